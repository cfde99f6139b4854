{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* cosched.labels (dict "root" $ "part" NAME) */}}
{{- define "cosched.labels" -}}
app.kubernetes.io/name: cosched-{{ .part }}
app.kubernetes.io/part-of: cosched
{{- if not .root.Values.plain }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}
{{- end }}

{{/* cosched.image (dict "root" $ "part" NAME "own" VALUES) */}}
{{- define "cosched.image" -}}
{{ .root.Values.image.registry }}cosched-{{ .part }}:{{ .own.tag | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* cosched.options (dict NAME VALUE ...): command-line options, sorted. A number of YAML is a float to Helm: 1000000 must not become 1e+06. */}}
{{- define "cosched.options" -}}
{{- range $name, $value := . }}
{{- if kindIs "bool" $value }}
- --{{ if not $value }}no-{{ end }}{{ $name }}
{{- else if kindIs "float64" $value }}
- --{{ $name }}={{ if eq (floor $value) $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- else }}
- {{ printf "--%s=%v" $name $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* cosched.refuse (dict "key" VALUES-KEY "options" OPTIONS "instead" (dict OPTION VALUE-NAME)): options that must fit other objects have values of their own. */}}
{{- define "cosched.refuse" -}}
{{- $ := . }}
{{- range $option, $value := .instead }}
{{- if hasKey $.options $option }}
{{- fail (printf "%s.options.%s: set %s instead, which other objects follow as well" $.key $option $value) }}
{{- end }}
{{- end }}
{{- end }}

{{/* cosched.hooks $: the names of the webhook's objects, as JSON. */}}
{{- define "cosched.hooks" -}}
{{- $o := .Values.webhook.options }}
{{- dict "service" (get $o "service-name" | default "cosched-webhook") "secret" (get $o "secret-name" | default "cosched-webhook-cert")
  "mutating" (get $o "webhook-config" | default "cosched-webhook") "validating" (get $o "validating-config" | default "cosched-webhook") | toJson }}
{{- end }}

{{/* cosched.env (dict "root" $ "own" LIST): how the API server is reached, and the user's own variables. */}}
{{- define "cosched.env" -}}
{{- if .root.Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ .root.Values.apiServer.host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ .root.Values.apiServer.port | default 443 | toString | quote }}
{{- end }}
{{- with .own }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* cosched.podMeta (dict "root" $ "part" NAME "own" VALUES "port" N): annotations and labels of a pod template. */}}
{{- define "cosched.podMeta" -}}
labels:
  {{- include "cosched.labels" . | nindent 2 }}
  {{- with .own.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if or .root.Values.metrics.annotations .own.podAnnotations }}
annotations:
  {{- if .root.Values.metrics.annotations }}
  prometheus.io/scrape: "true"
  prometheus.io/port: {{ .port | toString | quote }}
  prometheus.io/path: /metrics
  {{- end }}
  {{- with .own.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* cosched.podPlace VALUES: where a pod goes. */}}
{{- define "cosched.podPlace" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if .hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- end }}

{{/* cosched.spreadOut NAME: replicas on different nodes where there are several. */}}
{{- define "cosched.spreadOut" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          app.kubernetes.io/name: {{ . }}
{{- end }}

{{/* cosched.account (dict "root" $ "part" NAME) */}}
{{- define "cosched.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: cosched-{{ .part }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "cosched.labels" . | nindent 4 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* cosched.binding (dict "root" $ "part" NAME "kind" Role|ClusterRole "namespace" NAME) */}}
{{- define "cosched.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: cosched-{{ .part }}
  {{- if eq .kind "Role" }}
  namespace: {{ .namespace | default .root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "cosched.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: cosched-{{ .part }}
subjects:
- kind: ServiceAccount
  name: cosched-{{ .part }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/* cosched.probes: the same for all programs. */}}
{{- define "cosched.probes" -}}
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 10
  timeoutSeconds: 5 # a busy node is no reason to restart anything
readinessProbe:
  httpGet:
    path: /readyz
    port: http
  periodSeconds: 2
  timeoutSeconds: 2
{{- end }}

{{/* cosched.clientConfig (dict "root" $ "path" PATH): how the API server reaches the webhook. */}}
{{- define "cosched.clientConfig" -}}
{{- if .root.Values.webhook.url -}}
url: {{ printf "%s%s" (trimSuffix "/" .root.Values.webhook.url) .path | quote }}
{{- else -}}
service:
  name: {{ (include "cosched.hooks" .root | fromJson).service }}
  namespace: {{ .root.Release.Namespace }}
  path: {{ .path }}
  port: 443
{{- end }}
{{- end }}

{{/* cosched.isOurKey: CEL, whether the label or annotation k is one that the webhook reads or removes (lib/model/names.h). */}}
{{- define "cosched.isOurKey" -}}
k in ['cpuset-scheduler', 'cpuset', 'cpu-policy', 'gpu-topology', 'gpu-topology-replica', 'aliyun.com/gpu-count',
  'scheduling.x-k8s.io/pod-group', 'scheduling.alibabacloud.com/numa-topology-spec'] ||
k.startsWith('alibabacloud.com/') || k.startsWith('cosched.io/') || k.startsWith('ALIYUN_COM_GPU_MEM_') ||
k.startsWith('scheduler.framework.gpushare.') || k.startsWith('gpushare.alibabacloud.com/') || k.startsWith('topology.kubernetes.io/gpu-') ||
k.startsWith('gang.scheduling.koordinator.sh/') || k.startsWith('pod-group.scheduling.sigs.k8s.io')
{{- end }}

{{/* cosched.isResultKey: CEL, whether the annotation k is one that only we write: the list of grant_is_result_key (lib/model/grant.c), which test_policies.c compares. */}}
{{- define "cosched.isResultKey" -}}
k in ['cpuset', 'gpushare.alibabacloud.com/core-percentage', 'topology.kubernetes.io/gpu-group', 'topology.kubernetes.io/gpu-visible',
  'scheduler.framework.gpushare.allocation', 'scheduler.framework.gpushare.assume-time', 'scheduler.framework.gpushare.assigned',
  'ALIYUN_COM_GPU_MEM_IDX', 'ALIYUN_COM_GPU_MEM_DEV', 'ALIYUN_COM_GPU_MEM_POD', 'ALIYUN_COM_GPU_MEM_ASSIGNED', 'ALIYUN_COM_GPU_MEM_ASSUME_TIME'] ||
(k.startsWith('cosched.io/') && !(k in ['cosched.io/inject', 'cosched.io/cpuset-shared']))
{{- end }}

{{/* cosched.isPluginVariable: CEL, whether n is a variable that the device plugin sets, or a beginning of such names: the list of webhook/rules/rules_env.c, compared in the same way. */}}
{{- define "cosched.isPluginVariable" -}}
n == 'NVIDIA_VISIBLE_DEVICES' || n.startsWith('CGPU_') || n.startsWith('ALIYUN_COM_GPU_') || n.startsWith('CUDA_MPS_') || n.startsWith('COSCHED_')
{{- end }}

{{/* cosched.hidesLibrary PATH: CEL, whether what is mounted at PATH hides the isolation library, or may do so: webhook/rules/rules_mount.c. A control character, at which it may end
for others; not plain (//, ., ..); a directory above one of its two paths; at or below one of them. A relative path begins at the root. */}}
{{- define "cosched.hidesLibrary" -}}
{{ . }}.matches('[[:cntrl:]]|(^|/)[.]{1,2}(/|$)|//') || {{ . }}.matches('^/?(|etc|usr|usr/local)/?$') || {{ . }}.matches('^/?(etc/ld[.]so[.]preload|usr/local/cosched-gpu)(/.*)?$')
{{- end }}

{{/* cosched.hasOurKey METADATA: CEL, whether these labels or annotations have one. */}}
{{- define "cosched.hasOurKey" -}}
(has({{ . }}.annotations) && {{ . }}.annotations.exists(k,
  {{- include "cosched.isOurKey" . | nindent 2 }})) ||
(has({{ . }}.labels) && {{ . }}.labels.exists(k,
  {{- include "cosched.isOurKey" . | nindent 2 }}))
{{- end }}

{{/* cosched.asksForOurs (dict "root" $ "spec" SPEC "nvidia" BOOL): CEL, whether a pod's spec asks for anything of ours. Before its labels and annotations: an
API server stops counting the cost of an expression where it is decided, and a pod with a hundred thousand labels must not be passed over for that. */}}
{{- define "cosched.asksForOurs" -}}
{{- $asked := ternary "r.startsWith('aliyun.com/gpu') || r == 'nvidia.com/gpu'" "r.startsWith('aliyun.com/gpu')" .nvidia -}}
(has({{ .spec }}.schedulerName) && {{ .spec }}.schedulerName == '{{ .root.Values.schedulerName }}') ||
has({{ .spec }}.schedulingGroup) ||
({{ .spec }}.containers + (has({{ .spec }}.initContainers) ? {{ .spec }}.initContainers : [])).exists(c,
  has(c.resources) && (
    (has(c.resources.limits) && c.resources.limits.exists(r, {{ $asked }})) ||
    (has(c.resources.requests) && c.resources.requests.exists(r, {{ $asked }}))))
{{- end }}
