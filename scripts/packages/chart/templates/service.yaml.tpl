apiVersion: v1
kind: Service
metadata:
  name: {{ include "sightglass.name" . }}
  labels:
    {{- include "sightglass.labels" . | nindent 4 }}
spec:
  type: {{ .Values.service.type }}
  selector:
    {{- include "sightglass.selector" . | nindent 4 }}
  ports:
    - name: http
      port: {{ .Values.service.port }}
      targetPort: http
