apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "sightglass.name" . }}
  labels:
    {{- include "sightglass.labels" . | nindent 4 }}
data:
  sightglass.toml: |
    {{- include "sightglass.config" . | nindent 4 }}
