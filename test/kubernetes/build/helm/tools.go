//go:build tools

// Package tools names the program that build.sh builds, so that `go mod tidy`
// keeps what it needs in go.mod and go.sum. It is never compiled.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
