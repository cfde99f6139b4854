// SPDX-License-Identifier: Apache-2.0

// The baseline of bench_webhook: what a webhook of Go's standard library costs that only decodes a review and makes the same patch, without a rule.
//
//	baseline ADDRESS FOLDER     serves POST with the certificate in FOLDER
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

type resources struct {
	Limits   map[string]string `json:"limits,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

type container struct {
	Name      string     `json:"name"`
	Image     string     `json:"image"`
	Env       []variable `json:"env,omitempty"`
	Resources resources  `json:"resources,omitempty"`
}

type pod struct {
	Metadata struct {
		GenerateName string            `json:"generateName,omitempty"`
		Namespace    string            `json:"namespace,omitempty"`
		Labels       map[string]string `json:"labels,omitempty"`
		Annotations  map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		SchedulerName string      `json:"schedulerName,omitempty"`
		Containers    []container `json:"containers"`
	} `json:"spec"`
}

type response struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	PatchType string `json:"patchType,omitempty"`
	Patch     []byte `json:"patch,omitempty"`
}

type review struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Request    *struct {
		UID       string          `json:"uid"`
		Namespace string          `json:"namespace"`
		Operation string          `json:"operation"`
		Object    json.RawMessage `json:"object"`
	} `json:"request,omitempty"`
	Response *response `json:"response,omitempty"`
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

func answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 3<<20))
	var in review
	var p pod
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err == nil && in.Request != nil {
		err = json.Unmarshal(in.Request.Object, &p)
	}
	if err != nil || in.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	out := review{Kind: in.Kind, APIVersion: in.APIVersion, Response: &response{UID: in.Request.UID, Allowed: true}}
	ours := false
	for _, c := range p.Spec.Containers {
		for name := range c.Resources.Limits {
			ours = ours || strings.HasPrefix(name, "aliyun.com/gpu")
		}
	}
	if ours && p.Spec.SchedulerName == "default-scheduler" {
		out.Response.Patch, _ = json.Marshal([]operation{{"add", "/spec/schedulerName", "ack-co-scheduler"}})
		out.Response.PatchType = "JSONPatch"
	}
	text, _ := json.Marshal(out)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func main() {
	http.HandleFunc("/mutate", answer)
	log.Fatal(http.ListenAndServeTLS(os.Args[1], os.Args[2]+"/cert", os.Args[2]+"/key", nil))
}
