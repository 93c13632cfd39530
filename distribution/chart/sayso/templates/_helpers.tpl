{{/* What every object of a program has. Call with (dict "root" $ "name" "worker"). */}}
{{- define "sayso.selector" -}}
app.kubernetes.io/name: sayso
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "sayso.labels" -}}
{{ include "sayso.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "sayso.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ required "Set image.tag or image.digest." .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* Stop before values that were copied from an example and not replaced. */}}
{{- define "sayso.check" -}}
{{- $given := dict "image.repository" .Values.image.repository "image.tag" .Values.image.tag "publicUrl" .Values.publicUrl "existingSecret" .Values.existingSecret "config.configMap" .Values.config.configMap }}
{{- range $name, $value := $given }}
{{- if regexMatch "(?i)change-?_?me|placeholder|example\\.(com|org|net)|your-|todo|<|^latest$" (toString $value) }}
{{- fail (printf "%s is %q, a placeholder. Set it to your own." $name (toString $value)) }}
{{- end }}
{{- end }}
{{- $secrets := list "SAYSO_REDIS_URL" "SAYSO_QUEUE_URL" "SAYSO_ADMIN_PASSWORD" "SAYSO_KEY" "SAYSO_METRICS_TOKEN" "SAYSO_WEBHOOK_SECRET" "SAYSO_MODEL_KEY" "SAYSO_CHECKPOINTS" }}
{{- range $name, $value := .Values.settings }}
{{- if or (has $name $secrets) (regexMatch "://[^/]*@" (toString $value)) }}
{{- fail (printf "settings.%s holds a secret. Put it into the Secret %s, and its key into secretKeys." $name $.Values.existingSecret) }}
{{- end }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not (has "metrics-token" .Values.secretKeys)) }}
{{- fail "serviceMonitor needs metrics-token in secretKeys and in the Secret." }}
{{- end }}
{{- with .Values.backup }}
{{- if and .enabled (not .claim) }}
{{- fail "backup needs a claim: the name of a PersistentVolumeClaim of yours, on other disks than the store's." }}
{{- end }}
{{- if and .enabled (not .keySecret) (not (has "key-file" $.Values.secretKeys)) }}
{{- fail "backup would write in clear: name a Secret in backup.keySecret, or put key-file into secretKeys." }}
{{- end }}
{{- end }}
{{- end }}

{{/* The keys of the Secret that a program gets. */}}
{{- define "sayso.keys" -}}
{{- $own := dict "service" (list "metrics-token" "webhook-secret") "setup" (list "admin-password") }}
{{- $wanted := concat (list "redis-url" "queue-url" "key-file" "checkpoints" "archive" "egress-proxy" "model-key") (get $own .name | default list) }}
{{- range .root.Values.secretKeys }}{{ if has . $wanted }}{{ . }} {{ end }}{{ end }}
{{- end }}

{{/* The pod of a program. Call with (dict "root" $ "name" NAME "command" LIST "grace" SECONDS). */}}
{{- define "sayso.pod" -}}
{{- $values := .root.Values }}
{{- $own := get $values .name | default dict }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
terminationGracePeriodSeconds: {{ .grace }}
{{- if has .name (list "service" "worker" "clock") }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "sayso.selector" . | nindent 8 }}
{{- end }}
containers:
  - name: {{ .name }}
    image: {{ include "sayso.image" .root | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    command: {{ toJson .command }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    env:
      - {name: SAYSO_ENV, value: production}
      - {name: SAYSO_PUBLIC_URL, value: {{ $values.publicUrl | quote }}}
      - {name: SAYSO_PORT, value: "8321"}
      - {name: SAYSO_POLICY, value: {{ printf "/etc/sayso/%s" $values.config.policy | quote }}}
      - {name: SAYSO_STOP_DELAY_S, value: {{ $values.stopDelaySeconds | quote }}}
      {{- with $values.config.channels }}
      - {name: SAYSO_CHANNELS, value: {{ printf "/etc/sayso/%s" . | quote }}}
      {{- end }}
      {{- with $values.trustedProxies }}
      - {name: SAYSO_TRUSTED_PROXIES, value: {{ join "," . | quote }}}
      {{- end }}
      {{- with $values.agents }}
      - {name: SAYSO_AGENTS, value: {{ . | quote }}}
      {{- end }}
      {{- if $values.valkey.enabled }}
      - {name: SAYSO_ALLOW_PLAIN_STORE, value: "true"}  # between pods that the network policy names
      {{- end }}
      {{- range $name, $value := $values.settings }}
      - {name: {{ $name }}, value: {{ toString $value | quote }}}
      {{- end }}
      {{- range splitList " " (include "sayso.keys" . | trim) }}
      - {name: {{ if eq . "key-file" }}SAYSO_KEY_FILE{{ else }}SAYSO_{{ . | upper | replace "-" "_" }}_FILE{{ end }}, value: /run/secrets/sayso/{{ . }}}
      {{- end }}
    {{- if eq .name "service" }}
    ports:
      - {name: http, containerPort: 8321}
    startupProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 10
      timeoutSeconds: 5
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 2
      timeoutSeconds: 2
      failureThreshold: 1
    {{- else if has .name (list "worker" "clock") }}
    startupProbe:
      exec: {command: [python, -m, launch.checks, {{ .name }}]}
      periodSeconds: 10
      timeoutSeconds: 10
      failureThreshold: 12
    livenessProbe:
      exec: {command: [python, -m, launch.checks, {{ .name }}]}
      periodSeconds: 30
      timeoutSeconds: 10
    {{- end }}
    {{- with $own.resources }}
    resources: {{ toJson . }}
    {{- end }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      - {name: home, mountPath: /home/sayso/data}
      - {name: config, mountPath: /etc/sayso, readOnly: true}
      - {name: secrets, mountPath: /run/secrets/sayso, readOnly: true}
      {{- if eq .name "backup" }}
      - {name: backups, mountPath: /backups}
      {{- if $own.keySecret }}
      - {name: backup-key, mountPath: /run/secrets/backup, readOnly: true}
      {{- end }}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {medium: Memory, sizeLimit: 64Mi}
  - name: home  # with notes of calls that began, and of commits; it outlives a restart of the container, not the pod
    emptyDir: {}
  - name: config
    configMap: {name: {{ $values.config.configMap | quote }}}
  - name: secrets
    secret:
      secretName: {{ $values.existingSecret | quote }}
      defaultMode: 0440
      items:
        {{- range splitList " " (include "sayso.keys" . | trim) }}
        - {key: {{ . }}, path: {{ . }}}
        {{- end }}
  {{- if eq .name "backup" }}
  - name: backups
    persistentVolumeClaim: {claimName: {{ $own.claim | quote }}}
  {{- with $own.keySecret }}
  - name: backup-key
    secret: {secretName: {{ . | quote }}, defaultMode: 0440, items: [{key: key-file, path: key-file}]}
  {{- end }}
  {{- end }}
{{- end }}

{{/* The addresses of the sentinels, as a store's URL names them. */}}
{{- define "sayso.sentinels" -}}
{{- $name := printf "%s-valkey" .Release.Name }}
{{- range $i := until 3 }}{{ if $i }},{{ end }}{{ $name }}-{{ $i }}.{{ $name }}:26379{{ end }}
{{- end }}
