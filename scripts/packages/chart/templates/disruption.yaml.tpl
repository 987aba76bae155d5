{{- if .Values.postgresql.secret }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "sightglass.name" . }}
  labels:
    {{- include "sightglass.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "sightglass.selector" . | nindent 6 }}
{{- end }}
