apiVersion: apps/v1
{{- if .Values.postgresql.secret }}
kind: Deployment
{{- else }}
kind: StatefulSet
{{- end }}
metadata:
  name: {{ include "sightglass.name" . }}
  labels:
    {{- include "sightglass.labels" . | nindent 4 }}
spec:
  {{- if .Values.postgresql.secret }}
  replicas: {{ .Values.postgresql.replicas }}
  strategy:
    type: {{ .Values.postgresql.strategy }}
  {{- else }}
  replicas: 1
  serviceName: {{ include "sightglass.name" . }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "sightglass.selector" . | nindent 6 }}
  template:
    {{- include "sightglass.pod" . | nindent 4 }}
  {{- if not .Values.postgresql.secret }}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: ["ReadWriteOnce"]
        {{- if .Values.storage.className }}
        storageClassName: {{ .Values.storage.className }}
        {{- end }}
        resources:
          requests:
            storage: {{ .Values.storage.size }}
  {{- end }}
