{{- define "sightglass.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "sightglass.selector" -}}
app.kubernetes.io/name: sightglass
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sightglass.labels" -}}
{{ include "sightglass.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "sightglass.config" -}}
{{- range $name, $value := .Values.config }}
{{ $name }} = {{ $value | toJson }}
{{- end }}
{{- end }}

{{- define "sightglass.pod" -}}
metadata:
  labels:
    {{- include "sightglass.labels" . | nindent 4 }}
  annotations:
    checksum/config: {{ include "sightglass.config" . | sha256sum }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 60
  {{- if .Values.imagePullSecrets }}
  imagePullSecrets: {{ .Values.imagePullSecrets | toJson }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 7400
    runAsGroup: 7400
    fsGroup: 7400
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: sightglass
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: ["serve", "--config", "/etc/sightglass/sightglass.toml"]
      env:
        - name: SIGHTGLASS_DATA_DIR
          value: /data/sightglass
        {{- if .Values.postgresql.secret }}
        - name: SIGHTGLASS_DRAIN_WAIT
          value: {{ .Values.postgresql.drainWait | quote }}
        {{- end }}
      {{- if or .Values.secret .Values.postgresql.secret }}
      envFrom:
        {{- if .Values.secret }}
        - secretRef:
            name: {{ .Values.secret }}
        {{- end }}
        {{- if .Values.postgresql.secret }}
        - secretRef:
            name: {{ .Values.postgresql.secret }}
        {{- end }}
      {{- end }}
      ports:
        - name: http
          containerPort: 7400
      startupProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 10
        failureThreshold: {{ div .Values.startSeconds 10 }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 20
        timeoutSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 5
      resources: {{ .Values.resources | toJson }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: ["ALL"]
      volumeMounts:
        - name: config
          mountPath: /etc/sightglass
          readOnly: true
        - name: data
          mountPath: /data
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: config
      configMap:
        name: {{ include "sightglass.name" . }}
    - name: tmp
      emptyDir: {}
    {{- if .Values.postgresql.secret }}
    - name: data
      emptyDir: {}
    {{- end }}
{{- end }}
