package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const dra = "/apis/resource.k8s.io/v1/"

// An API server without etcd, admission or conversion: what it is asked for, it has encoded already.
type server struct {
	clock                   *clock
	nodes, waiting, bound   *resource
	slices, claims, classes *resource
	rules                   *resource
	shapes                  map[string]json.RawMessage
	template                []byte
	made                    atomic.Int64
	rate                    atomic.Int64
	events                  atomic.Int64
}

func apiserver(arguments []string) error {
	flags := flag.NewFlagSet("apiserver", flag.ExitOnError)
	folder := flags.String("folder", "", "where the objects are, a file for each resource with an object on each line")
	port := flags.Int("port", 0, "where to listen")
	safe := flags.Int("tls", 0, "where to listen with TLS")
	authority := flags.String("authority", "", "file that is written for clients with TLS")
	flags.Parse(arguments)
	s, err := loaded(*folder)
	if err != nil {
		return err
	}
	go s.churn()
	certificate, err := certified(*authority)
	if err != nil {
		return err
	}
	secured, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *safe))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		return err
	}
	// A client that is killed is none of our business.
	serving := &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}
	go serving.Serve(tls.NewListener(secured, &tls.Config{Certificates: []tls.Certificate{certificate}}))
	return serving.Serve(listener)
}

func loaded(folder string) (*server, error) {
	c := &clock{at: 1_000_000}
	s := &server{clock: c, nodes: newResource(c), waiting: newResource(c), bound: newResource(c), slices: newResource(c),
		claims: newResource(c), classes: newResource(c), rules: newResource(c), shapes: map[string]json.RawMessage{}}
	files := map[string]*resource{"nodes": s.nodes, "boundpods": s.bound, "resourceslices": s.slices,
		"resourceclaims": s.claims, "deviceclasses": s.classes}
	for name, r := range files {
		if err := r.load(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
		r.page(0, 0)
	}
	shapes, err := os.ReadFile(filepath.Join(folder, "shapes"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(shapes, &s.shapes); err != nil {
		return nil, err
	}
	s.template, err = os.ReadFile(filepath.Join(folder, "pod"))
	return s, err
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/load/"):
		s.loadtest(w, r)
	case path == "/apis":
		reply(w, 200, []byte(`{"kind":"APIGroupList","groups":[{"name":"resource.k8s.io","versions":[{"version":"v1"}]}]}`))
	case path == "/apis/resource.k8s.io/v1":
		reply(w, 200, []byte(`{"kind":"APIResourceList","resources":[{"name":"resourceslices"},{"name":"resourceclaims"},`+
			`{"name":"deviceclasses"},{"name":"devicetaintrules"}]}`))
	case strings.HasPrefix(path, "/apis/events.k8s.io/"):
		io.Copy(io.Discard, r.Body)
		s.events.Add(1)
		reply(w, 201, []byte(`{"kind":"Event","metadata":{}}`))
	default:
		s.objects(w, r)
	}
}

func (s *server) objects(w http.ResponseWriter, r *http.Request) {
	lists := map[string]*resource{"/api/v1/nodes": s.nodes, dra + "resourceslices": s.slices,
		dra + "resourceclaims": s.claims, dra + "deviceclasses": s.classes, dra + "devicetaintrules": s.rules,
		"/api/v1/pods": s.waiting}
	listed := lists[r.URL.Path]
	if listed == s.waiting && strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName!=") {
		listed = s.bound
	}
	part := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case listed != nil && r.URL.Query().Get("watch") != "":
		s.watch(w, r, listed)
	case listed != nil:
		s.list(w, r, listed)
	case len(part) >= 6 && part[0] == "apis" && part[5] == "resourceclaims":
		s.one(w, r, s.claims, part[4]+"/"+part[6])
	case len(part) >= 6 && part[4] == "pods" && r.Method == http.MethodPost:
		s.bind(w, r, part[3]+"/"+part[5])
	case len(part) >= 6 && part[4] == "pods":
		s.one(w, r, s.waiting, part[3]+"/"+part[5])
	default:
		failed(w, 404, "NotFound", "no such path")
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request, of *resource) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	offset, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	if limit == 0 {
		limit = 1 << 30
	}
	at := s.clock.now()
	items, total := of.page(offset, limit)
	token := ""
	if offset+len(items) < total {
		token = strconv.Itoa(offset + len(items))
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[`, at, token)
	body.Write(bytes.Join(items, []byte(",")))
	body.WriteString("]}")
	reply(w, 200, body.Bytes())
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, of *resource) {
	from, _ := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if seconds == 0 {
		seconds = 1800
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	out := w.(http.Flusher)
	out.Flush()
	end := time.After(time.Duration(seconds) * time.Second)
	last := time.After(time.Duration(max(seconds-2, 1)) * time.Second)
	marks := time.NewTicker(20 * time.Second)
	defer marks.Stop()
	for position := of.since(from); ; {
		at := s.clock.now()
		events, next, news := of.after(position)
		position = next
		for _, each := range events {
			if _, err := w.Write(each.line); err != nil {
				return
			}
		}
		out.Flush()
		select {
		case <-news:
			continue
		case <-marks.C:
		case <-last:
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
		if len(events) == 0 {
			fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`+"\n", at)
		}
	}
}

// one answers what concerns a single object.
func (s *server) one(w http.ResponseWriter, r *http.Request, of *resource, key string) {
	body, _ := io.ReadAll(r.Body)
	raw, problem := of.get(key), ""
	if raw == nil && of == s.waiting {
		of = s.bound
		raw = of.get(key)
	}
	if raw == nil {
		failed(w, 404, "NotFound", key)
		return
	}
	if r.Method == http.MethodPatch {
		is := r.Header.Get("Content-Type")
		raw, problem = of.put(key, func(old []byte) ([]byte, string) { return patched(old, body, is) })
	}
	if raw == nil {
		failed(w, 409, "Conflict", problem)
		return
	}
	reply(w, 200, raw)
}

func patched(old, patch []byte, kind string) ([]byte, string) {
	var object map[string]any
	if old == nil || json.Unmarshal(old, &object) != nil {
		return nil, "is gone"
	}
	if strings.HasPrefix(kind, "application/merge-patch") {
		var change map[string]any
		if err := json.Unmarshal(patch, &change); err != nil {
			return nil, err.Error()
		}
		merge(object, change)
		made, err := json.Marshal(object)
		return made, fmt.Sprint(err)
	}
	var steps []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(patch, &steps); err != nil {
		return nil, err.Error()
	}
	for _, step := range steps {
		parts := strings.Split(step.Path[1:], "/")
		inside := object
		for _, name := range parts[:len(parts)-1] {
			next, ok := inside[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				inside[name] = next
			}
			inside = next
		}
		name := parts[len(parts)-1]
		if name == "resourceVersion" && step.Value != inside[name] {
			return nil, "the object has been modified"
		}
		if step.Op == "remove" {
			delete(inside, name)
		} else {
			inside[name] = step.Value
		}
	}
	made, err := json.Marshal(object)
	return made, fmt.Sprint(err)
}

func merge(into, change map[string]any) {
	for name, value := range change {
		inside, isMap := value.(map[string]any)
		old, wasMap := into[name].(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case isMap && wasMap:
			merge(old, inside)
		default:
			into[name] = value
		}
	}
}

func (s *server) bind(w http.ResponseWriter, r *http.Request, key string) {
	var binding struct {
		Metadata struct{ ResourceVersion string }
		Target   struct{ Name string }
	}
	if err := json.NewDecoder(r.Body).Decode(&binding); err != nil {
		failed(w, 400, "BadRequest", err.Error())
		return
	}
	raw := s.waiting.get(key)
	wanted := []byte(`"resourceVersion":"` + binding.Metadata.ResourceVersion + `"`)
	if raw == nil || (binding.Metadata.ResourceVersion != "" && !bytes.Contains(raw, wanted)) {
		failed(w, 409, "Conflict", "the pod is bound, or has been modified")
		return
	}
	s.waiting.remove(key)
	spec := []byte(`"spec":{`)
	node := []byte(`"spec":{"nodeName":"` + binding.Target.Name + `",`)
	s.bound.put(key, func([]byte) ([]byte, string) { return bytes.Replace(raw, spec, node, 1), "" })
	reply(w, 201, []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`))
}

// loadtest answers what no API server is asked: pods made and ended by the hundred, and changes at a rate.
func (s *server) loadtest(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch r.URL.Path {
	case "/load/pods":
		count, _ := strconv.Atoi(query.Get("count"))
		reply(w, 200, append(append([]byte("["), bytes.Join(s.make(count, strings.Split(query.Get("shapes"), ",")), []byte(","))...), ']'))
	case "/load/end":
		var names []string
		if err := json.NewDecoder(r.Body).Decode(&names); err != nil {
			failed(w, 400, "BadRequest", err.Error())
			return
		}
		for _, name := range names {
			if s.waiting.remove("load/"+name) == nil {
				s.bound.remove("load/" + name)
			}
			s.claims.remove("load/" + name + "-gpus")
		}
		reply(w, 200, []byte("{}"))
	case "/load/churn":
		rate, _ := strconv.ParseInt(query.Get("rate"), 10, 64)
		s.rate.Store(rate)
		reply(w, 200, []byte("{}"))
	case "/load/names":
		var names []string
		items, _ := s.nodes.page(0, 1<<30)
		for _, raw := range items {
			names = append(names, keyOf(raw)[1:])
		}
		made, _ := json.Marshal(names)
		reply(w, 200, made)
	default:
		failed(w, 404, "NotFound", "no such path")
	}
}

// make creates pods that wait, each with a claim of its own; shapes take turns.
func (s *server) make(count int, shapes []string) [][]byte {
	var pods [][]byte
	for number := 0; number < count; number++ {
		shape := shapes[number%len(shapes)]
		id := s.made.Add(1)
		name, uid := fmt.Sprintf("load-%s-%07d", shape, id), fmt.Sprintf("%08x-0000-4000-8000-000000000000", id)
		s.claims.put("load/"+name+"-gpus", func([]byte) ([]byte, string) { return s.claim(name, uid, shape), "" })
		pod := bytes.ReplaceAll(bytes.ReplaceAll(s.template, []byte("NAME"), []byte(name)), []byte("UID"), []byte(uid))
		raw, _ := s.waiting.put("load/"+name, func([]byte) ([]byte, string) { return pod, "" })
		pods = append(pods, raw)
	}
	return pods
}

func (s *server) claim(name, uid, shape string) []byte {
	if s.shapes[shape] == nil {
		panic("no such shape: " + shape)
	}
	return []byte(fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"%s-gpus",`+
		`"namespace":"load","uid":"c%s","resourceVersion":"0","creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"finalizers":["resource.kubernetes.io/delete-protection"],"annotations":{"resource.kubernetes.io/pod-claim-name":"gpus"},`+
		`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"%s","uid":"%s","controller":true,"blockOwnerDeletion":true}]},`+
		`"spec":{"devices":%s},"status":{}}`, name, uid, name, uid, s.shapes[shape]))
}

// churn changes bound pods, one after the other, as kubelets do when they report.
func (s *server) churn() {
	const step = 5 * time.Millisecond
	items, _ := s.bound.page(0, 1<<30)
	var keys []string
	for _, raw := range items {
		keys = append(keys, keyOf(raw))
	}
	sort.Strings(keys)
	var owed float64
	for at := 0; ; {
		time.Sleep(step)
		if owed += float64(s.rate.Load()) * step.Seconds(); len(keys) == 0 {
			owed = 0
		}
		for ; owed >= 1; owed-- {
			s.bound.put(keys[at%len(keys)], func(old []byte) ([]byte, string) { return old, "" })
			at++
		}
	}
}

func reply(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func failed(w http.ResponseWriter, code int, reason, message string) {
	body, _ := json.Marshal(map[string]any{"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
	reply(w, code, body)
}

func certified(authority string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "load"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, os.WriteFile(authority, encoded, 0o600)
}
