{{- define "warptape.name" -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- end }}

{{- define "warptape.selector" -}}
app.kubernetes.io/name: warptape
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "warptape.labels" -}}
{{ include "warptape.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "warptape.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The environment variable of a setting: kafka.properties.sasl.password is WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD. */}}
{{- define "warptape.variable" -}}
WARPTAPE__{{ . | upper | replace "." "__" }}
{{- end }}

{{/* What would start and then fail, or do nothing. */}}
{{- define "warptape.validate" -}}
{{- $processes := ternary .Values.keda.maxReplicas .Values.replicas .Values.keda.enabled | int }}
{{- $key := ternary "keda.maxReplicas" "replicas" .Values.keda.enabled }}
{{- if not .Values.kafka.brokers }}
{{- fail "kafka.brokers is not set: give HOST:PORT[,HOST:PORT…] of the cluster that has the log" }}
{{- end }}
{{- $journals := int .Values.kafka.journalPartitions }}
{{- if gt $processes $journals }}
{{- $why := "each process needs a partition of the journal of its own" }}
{{- fail (printf "%s is %d and kafka.journalPartitions %d: %s" $key $processes $journals $why) }}
{{- end }}
{{- $partitions := int .Values.kafka.partitions }}
{{- if gt $processes $partitions }}
{{- $why := "a process without a partition of ticks has nothing to do" }}
{{- fail (printf "%s is %d and kafka.partitions %d: %s" $key $processes $partitions $why) }}
{{- end }}
{{- if and .Values.keda.enabled (gt (int .Values.keda.minReplicas) (int .Values.keda.maxReplicas)) }}
{{- fail "keda.minReplicas is greater than keda.maxReplicas" }}
{{- end }}
{{- if and .Values.keda.enabled .Values.keda.prometheus.enabled (not .Values.keda.prometheus.serverAddress) }}
{{- fail "keda.prometheus.serverAddress is not set: give the URL of Prometheus" }}
{{- end }}
{{- if gt (int .Values.kafka.minInsyncReplicas) (int .Values.kafka.replicationFactor) }}
{{- if gt (int .Values.kafka.replicationFactor) 0 }}
{{- fail "kafka.minInsyncReplicas is greater than kafka.replicationFactor: nothing could be written" }}
{{- end }}
{{- end }}
{{- if and (not .Values.gpu.enabled) (contains "cuda" .Values.devices) }}
{{- fail "devices names a GPU, and gpu.enabled is false: the container would have none" }}
{{- end }}
{{- end }}

{{/* Arguments before the command's own. */}}
{{- define "warptape.arguments" -}}
{{- if .Values.config -}}
- --config
- /etc/warptape/warptape.toml
{{- end }}
{{- end }}

{{/* What all processes and the job share. */}}
{{- define "warptape.environment" -}}
- name: WARPTAPE__LOG__URL
  value: {{ printf "kafka:%s" .Values.kafka.brokers | quote }}
- name: WARPTAPE__ENGINE__GROUP
  value: {{ .Values.kafka.group | quote }}
- name: WARPTAPE__TOPICS__PREFIX
  value: {{ .Values.kafka.topicPrefix | quote }}
- name: WARPTAPE__TOPICS__PARTITIONS
  value: {{ .Values.kafka.partitions | int | quote }}
- name: WARPTAPE__TOPICS__JOURNAL_PARTITIONS
  value: {{ .Values.kafka.journalPartitions | int | quote }}
- name: WARPTAPE__KAFKA__REPLICATION_FACTOR
  value: {{ .Values.kafka.replicationFactor | int | quote }}
- name: WARPTAPE__KAFKA__MIN_INSYNC_REPLICAS
  value: {{ .Values.kafka.minInsyncReplicas | int | quote }}
{{- range .Values.secrets }}
- name: {{ include "warptape.variable" .setting }}_FILE
  value: /etc/warptape/secrets/{{ .setting }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "warptape.mounts" -}}
{{- if .Values.config -}}
- name: config
  mountPath: /etc/warptape/warptape.toml
  subPath: warptape.toml
  readOnly: true
{{- end }}
{{- if .Values.secrets }}
- name: secrets
  mountPath: /etc/warptape/secrets
  readOnly: true
{{- end }}
{{- end }}

{{/* Called with a dictionary of `root` and `config`, the name of the ConfigMap. */}}
{{- define "warptape.volumes" -}}
{{- if .root.Values.config -}}
- name: config
  configMap:
    name: {{ .config }}
{{- end }}
{{- with .root.Values.secrets }}
- name: secrets
  projected:
    # For the group of the process alone.
    defaultMode: 0440
    sources:
      {{- range . }}
      - secret:
          name: {{ .secret }}
          items:
            - key: {{ .key }}
              path: {{ .setting }}
      {{- end }}
{{- end }}
{{- end }}

{{/* What the HTTP endpoint takes: its certificate and its token. */}}
{{- define "warptape.endpointEnvironment" -}}
{{- if .Values.endpoint.tlsSecret }}
- name: WARPTAPE__ENDPOINT__TLS_CERTIFICATE
  value: /etc/warptape/tls/tls.crt
- name: WARPTAPE__ENDPOINT__TLS_KEY
  value: /etc/warptape/tls/tls.key
{{- end }}
{{- if .Values.endpoint.tokenSecret }}
- name: WARPTAPE__ENDPOINT__TOKEN_FILE
  value: /etc/warptape/token/{{ .Values.endpoint.tokenKey }}
{{- else }}
{{- /* The network policy says who reaches it. */}}
- name: WARPTAPE__ENDPOINT__UNGUARDED
  value: pages
{{- end }}
{{- end }}

{{- define "warptape.endpointMounts" -}}
{{- if .Values.endpoint.tlsSecret }}
- name: tls
  mountPath: /etc/warptape/tls
  readOnly: true
{{- end }}
{{- if .Values.endpoint.tokenSecret }}
- name: token
  mountPath: /etc/warptape/token
  readOnly: true
{{- end }}
{{- end }}

{{- define "warptape.endpointVolumes" -}}
{{- if .Values.endpoint.tlsSecret }}
- name: tls
  secret:
    secretName: {{ .Values.endpoint.tlsSecret }}
    defaultMode: 0440
{{- end }}
{{- if .Values.endpoint.tokenSecret }}
- name: token
  secret:
    secretName: {{ .Values.endpoint.tokenSecret }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* How Prometheus scrapes a service. Called with a dictionary of `root`, `service` and `job`. */}}
{{- define "warptape.scrape" -}}
- port: http
  path: /metrics
  interval: {{ .root.Values.serviceMonitor.interval }}
  # The alerts of deploy/prometheus look for this job, whatever the release is called.
  relabelings:
    - { targetLabel: job, replacement: {{ .job }} }
  {{- if .root.Values.endpoint.tlsSecret }}
  scheme: https
  tlsConfig:
    # The certificate names the service, a scrape goes to the pod's address.
    serverName: {{ .service }}.{{ .root.Release.Namespace }}.svc
    ca:
      secret: { name: {{ .root.Values.endpoint.tlsSecret }}, key: ca.crt }
  {{- end }}
  {{- if .root.Values.endpoint.tokenSecret }}
  authorization:
    type: Bearer
    credentials:
      name: {{ .root.Values.endpoint.tokenSecret }}
      key: {{ .root.Values.endpoint.tokenKey }}
  {{- end }}
{{- end }}

{{/* The user of the image, 65532, is a number there, so the node can tell that it is not root. */}}
{{- define "warptape.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "warptape.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
