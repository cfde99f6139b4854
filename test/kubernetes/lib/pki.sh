# shellcheck shell=bash
# Throwaway keys, certificates, tokens and kubeconfigs of one cluster, in $DIR/pki (0700).

# make_cert NAME SUBJECT EXTENSIONS: a P-256 key and a certificate by the cluster's CA.
make_cert() {
  local name=$1 subject=$2 extensions=$3
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$subject" \
    -keyout "$name.key" -out "$name.csr" 2>/dev/null
  printf '%b' "$extensions" >"$name.ext"
  openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 \
    -out "$name.crt" -extfile "$name.ext" 2>/dev/null
  rm -f "$name.csr" "$name.ext"
}

make_pki() { # run in a subshell: changes directory
  local names client=extendedKeyUsage=clientAuth server=extendedKeyUsage=serverAuth
  umask 077
  cd "$DIR/pki" || return 1
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj /CN=cosched-test-ca -keyout ca.key -out ca.crt 2>/dev/null
  openssl ecparam -name prime256v1 -genkey -noout -out sa.key
  openssl ec -in sa.key -pubout -out sa.pub 2>/dev/null
  names=subjectAltName=IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes
  names+=,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local
  make_cert apiserver /CN=kube-apiserver "$server\n$names"
  make_cert apiserver-kubelet /O=system:masters/CN=apiserver-kubelet-client "$client"
  make_cert admin /O=system:masters/CN=admin "$client"
  # system:masters: no service account per controller is needed, which is 5 s sooner ready.
  make_cert controller-manager /O=system:masters/CN=system:kube-controller-manager "$client"
  make_cert scheduler /CN=system:kube-scheduler "$client"
  openssl rand -hex 24 >token
  echo "$(cat token),admin-by-token,1,\"system:masters\"" >tokens.csv
}

make_node_certs() { # make_node_certs NODE IP; in a subshell too
  umask 077
  cd "$DIR/pki" || return 1
  make_cert node "/O=system:nodes/CN=system:node:$1" extendedKeyUsage=clientAuth
  make_cert kubelet-serving "/O=system:nodes/CN=system:node:$1" \
    "extendedKeyUsage=serverAuth\nsubjectAltName=IP:127.0.0.1,IP:$2,DNS:$1,DNS:localhost"
}

# write_kubeconfig FILE USER-YAML
write_kubeconfig() {
  local umask_before
  umask_before=$(umask)
  umask 077
  cat >"$1" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:$API_PORT", certificate-authority: "$DIR/pki/ca.crt"}}]
users: [{name: test, user: {$2}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
EOF
  umask "$umask_before"
}

cert_kubeconfig() { # cert_kubeconfig FILE CERTIFICATE-NAME
  write_kubeconfig "$1" "client-certificate: \"$DIR/pki/$2.crt\", client-key: \"$DIR/pki/$2.key\""
}

make_kubeconfigs() {
  cert_kubeconfig "$DIR/kubeconfig" admin
  cert_kubeconfig "$DIR/kubeconfig.controller-manager" controller-manager
  cert_kubeconfig "$DIR/kubeconfig.scheduler" scheduler
  write_kubeconfig "$DIR/kubeconfig.token" "tokenFile: \"$DIR/pki/token\""
}
