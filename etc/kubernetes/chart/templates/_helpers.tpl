{{/* The name of all objects: the release's, with the chart's unless it is part of it. */}}
{{- define "pgusher.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 56 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 56 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 56 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pgusher.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pgusher.labels" -}}
{{ include "pgusher.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "pgusher.secret" -}}
{{- if .Values.auth.users -}}
{{- if .Values.auth.existingSecret -}}
{{- fail "auth.users and auth.existingSecret exclude each other" -}}
{{- end -}}
{{- include "pgusher.fullname" . -}}
{{- else -}}
{{- default (include "pgusher.fullname" .) .Values.auth.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* The settings that follow from other values; those in .Values.settings come before them. */}}
{{- define "pgusher.settings" -}}
listen_addr: "*"
listen_port: 6432
unix_socket_dir: ""
auth_file: /etc/pgusher/userlist.txt
watch_config: 1
drain_delay: {{ .Values.drain.delay }}
shutdown_timeout: {{ .Values.drain.timeout }}
server_tls_sslmode: {{ .Values.tls.servers.mode }}
{{- if .Values.tls.servers.caSecretName }}
server_tls_ca_file: /etc/pgusher/server-tls/ca.crt
{{- end }}
{{- with .Values.tls.clients }}
{{- if .secretName }}
client_tls_sslmode: {{ .mode }}
client_tls_cert_file: /etc/pgusher/client-tls/tls.crt
client_tls_key_file: /etc/pgusher/client-tls/tls.key
{{- if .caKey }}
client_tls_ca_file: /etc/pgusher/client-tls/ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.hba }}
auth_type: hba
auth_hba_file: /etc/pgusher/pg_hba.conf
{{- end }}
{{- if .Values.peers.enabled }}
peers: dns:{{ include "pgusher.fullname" . }}-peers
dns_max_ttl: 5
{{- end }}
{{- if .Values.metrics.enabled }}
metrics_listen_addr: "*"
metrics_port: {{ .Values.metrics.port }}
{{- end }}
{{- end -}}

{{/* A number as it was written, and a switch as pgusher has it. */}}
{{- define "pgusher.value" -}}
{{- if kindIs "bool" . -}}
{{- ternary "1" "0" . -}}
{{- else if kindIs "string" . -}}
{{- if contains "\n" . -}}
{{- fail (printf "a value of pgusher.ini has no line feed: %q" .) -}}
{{- end -}}
{{- . -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}

{{/* The lines of a section. Names that are no plain words stand in quotes. */}}
{{- define "pgusher.lines" -}}
{{- range $key, $value := . }}
{{- if not (kindIs "invalid" $value) }}
{{- if contains "'" $key }}
{{- fail (printf "a name in pgusher.ini has no quote: %q" $key) }}
{{- end }}
{{ printf "%s = %s" (ternary $key (printf "'%s'" $key) (regexMatch "^[A-Za-z0-9_.*-]+$" $key)) (include "pgusher.value" $value) | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "pgusher.ini" -}}
[databases]
{{- include "pgusher.lines" .Values.databases }}
{{- if .Values.users }}

[users]
{{- include "pgusher.lines" .Values.users }}
{{- end }}

[pgusher]
{{- $made := include "pgusher.settings" . | fromYaml }}
{{- $given := .Values.settings }}
{{- if .Values.hba }}
{{- $given = omit $given "auth_type" }}
{{- end }}
{{- $all := dict }}
{{- range $key, $value := $made }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- range $key, $value := $given }}
{{- $_ := set $all $key $value }}
{{- end }}
{{- include "pgusher.lines" $all }}
{{- with .Values.extraConfig }}

{{ . }}
{{- end }}
{{- end -}}

{{/* A probe of one kind; the dict has kind, path and root. */}}
{{- define "pgusher.probe" -}}
{{- if eq .kind "http" -}}
{{- if not .root.Values.metrics.enabled -}}
{{- fail "http probes need metrics.enabled" -}}
{{- end -}}
httpGet:
  path: {{ .path }}
  port: metrics
{{- else if eq .kind "exec" -}}
exec:
  command: ["pgusher", "--health", "/etc/pgusher/pgusher.ini"]
{{- else -}}
tcpSocket:
  port: postgres
{{- end -}}
{{- end -}}
