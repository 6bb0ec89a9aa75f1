package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// Everything that kubectl and its users make of one node and one Pod gives the same facts.
func TestClusterFileForms(t *testing.T) {
	n, p := node("n1", "10.10.0.3", "172.16.1.0/24"), pod("shop/cart-1", "172.16.1.7", "n1", "10.10.0.3", "Running")
	list := kubeList(n, p)
	asJSON := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	asYAML := func(j []byte) []byte {
		b, err := yaml.JSONToYAML(j)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	without := func(o obj, keys ...string) obj {
		c := obj{}
		merge(c, o)
		for _, k := range keys {
			delete(c, k)
		}
		return c
	}
	utf16Text := func(order binary.AppendByteOrder, b []byte) []byte {
		out := order.AppendUint16(nil, 0xfeff)
		for _, u := range utf16.Encode([]rune(string(b))) {
			out = order.AppendUint16(out, u)
		}
		return out
	}
	nodeItems, podItems := []obj{without(n, "kind", "apiVersion")}, []obj{without(p, "kind", "apiVersion")}

	for _, tt := range []struct {
		form string
		text []byte
	}{
		{"a List, as kubectl get nodes,pods prints it", list},
		{"on one line", asJSON(json.RawMessage(list))},
		{"with a UTF-8 byte order mark", join([]byte("\xef\xbb\xbf"), list)},
		{"in UTF-16, as Windows PowerShell redirects it", utf16Text(binary.LittleEndian, list)},
		{"in big-endian UTF-16", utf16Text(binary.BigEndian, list)},
		{"with white space around it", join([]byte("\r\n\n "), list, []byte("\n\n\t"))},
		{"two lists in a row", join(kubeList(n), kubeList(p))},
		{"two objects in a row", join(asJSON(n), asJSON(p))},
		{"an object, then a list", join(asJSON(p), []byte("\n"), kubeList(n))},
		{"a bare array, as jq .items prints it", asJSON([]obj{n, p})},
		{
			"lists of one kind whose items have none, the kind before them, as the API server prints",
			join([]byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":`), asJSON(nodeItems), []byte(`}`),
				[]byte(`{"kind":"PodList","items":`), asJSON(podItems), []byte(`}`)),
		},
		{
			"the same with the kind behind them",
			join(asJSON(obj{"items": nodeItems, "kind": "NodeList"}), []byte(`{"items":`), asJSON(podItems), []byte(`,"kind":"PodList"}`)),
		},
		{"with kinds that nobody asked for", kubeList(n, obj{"kind": "Deployment", "spec": obj{"clusterIP": []int{1}, "hostNetwork": "x"}}, obj{"kind": "Widget"}, obj{}, p)},
		{"with a Service of another API group", kubeList(n, p, obj{"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": obj{"containers": "none"}})},
		{"with null in place of what is empty", join([]byte(`{"kind":"List","items":null}`), bytes.Replace(list, []byte(`"metadata": {`), []byte(`"status": null, "metadata": {`), 1))},
		{"with a number out of range where nothing is read", join(list, []byte(`{"kind":"Widget","spec":{"n":1e999},"n":-1E400}`))},
		{"as YAML", asYAML(list)},
		{"as YAML documents", join([]byte("# kubectl get -o yaml\n---\n"), asYAML(asJSON(n)), []byte("---\n"), asYAML(asJSON(p)), []byte("...\n"))},
		{"as YAML documents with text behind the dashes", join([]byte("--- # node\n"), asYAML(asJSON(n)), []byte("--- # Pod\n"), asYAML(asJSON(p)))},
		{"as YAML with CR LF", bytes.ReplaceAll(asYAML(list), []byte("\n"), []byte("\r\n"))},
	} {
		t.Run(tt.form, func(t *testing.T) {
			f := mustNew(t, Input{Cluster: tt.text, ClusterName: "c.json"})
			for _, want := range []struct{ addr, role string }{
				{"172.16.1.7", "pod shop/cart-1 on n1"}, {"10.10.0.3", "node n1"}, {"172.16.1.8", "pod on n1, range"},
			} {
				if got := roleWord(f.Role(addr(want.addr))); got != want.role {
					t.Errorf("%s is %q, want %q", want.addr, got, want.role)
				}
			}
			if g := f.Given(); !strings.HasPrefix(g[0].Value, "c.json: 1 node, 1 Pod") {
				t.Errorf("given %q", g[0].Value)
			}
		})
	}
}

func TestClusterFileErrors(t *testing.T) {
	n := kubeList(node("n1", "10.10.0.3", "172.16.1.0/24"))
	const command = "kubectl get nodes,pods -A -o json"
	for _, tt := range []struct {
		rule string
		text string
		want []string // parts of the message
	}{
		{"an empty file", "", []string{"empty", command}},
		{"white space alone", " \n\t", []string{"empty", command}},
		{"a list of nothing", `{"kind":"List","items":[]}`, []string{"no nodes and no Pods in it (0 objects", command}},
		{"a file of other kinds", `{"kind":"List","items":[{"kind":"Service","metadata":{"name":"a"}},{"kind":"ConfigMap"}]}`, []string{"no nodes and no Pods in it (2 objects of other kinds)", command}},
		{"items that never get a kind", `{"items":[{"metadata":{"name":"a"}}]}`, []string{"no nodes and no Pods", "1 object of"}},
		{"kubectl's table", "NAME   STATUS   ROLES   AGE\nn1     Ready    <none>  1d\n", []string{"document at line 1", command}},
		{"kubectl's error", "error: You must be logged in to the server", []string{"no nodes and no Pods", command}},
		{"YAML that is none", "kind: List\nitems: [\n", []string{"document at line 1 is neither JSON nor YAML", command}},
		{"the second YAML document", "kind: Node\nmetadata: {name: a}\n---\nplain text\n", []string{"document at line 3 is text"}},
		{"a wrong field in YAML", "kind: Node\nmetadata: {name: a}\nspec: {podCIDR: [1]}\n", []string{"document at line 1", `item 1 (Node "a")`, "spec.podCIDR"}},
		{"JSON cut in an item", string(n[:len(n)/2]), []string{"item 1", "the file ends in the middle", command}},
		{"JSON cut behind an item", `{"items":[{"kind":"Node","metadata":{"name":"a"}}`, []string{"the file ends in the middle"}},
		{"JSON cut in a key", `{"kind":"List","it`, []string{"the file ends in the middle"}},
		{"a comma too many", "{\"items\": [\n  {\"kind\": \"Widget\"},\n  ,\n]}", []string{"line 3 (byte 36)", "not JSON"}},
		{"a syntax error inside an item, by line", "{\"items\": [\n  {\"kind\": \"Node\",\n   \"metadata\" {}}\n]}", []string{"line 3 (byte 45), in item 1", "not JSON"}},
		{"text behind the JSON", string(n) + "root@node:~# exit\n", []string{"line 35 ", "not JSON"}},
		{"a value behind the JSON", string(n) + "17", []string{"line 35 ", "text behind the objects"}},
		{"items that are no list", `{"kind":"List","items":{"kind":"Node"}}`, []string{"items is not a list"}},
		{"a Pod whose address is a number", `{"items":[{"kind":"Node","metadata":{"name":"n"}},{"kind":"Pod","metadata":{"namespace":"d","name":"a\u001b[2J"},"status":{"podIP":7}}]}`, []string{`item 2 (Pod "d/a\x1b[2J")`, "status.podIP is of type number, in Kubernetes string", command}},
		{"the same without a kind of its own", `{"items":[{"metadata":{"name":"a"},"spec":{"containers":{}}}],"kind":"PodList"}`, []string{`item 1 (Pod "a")`, "spec.containers is of type object, in Kubernetes array"}},
		{"a number alone in place of an item", `{"kind":"PodList","items":[7]}`, []string{"item 1"}},
		{"a node without a name", `{"kind":"Node"}`, []string{"item 1", "without metadata.name"}},
		{"odd UTF-16", "\xff\xfe{", []string{"UTF-16", "cut"}},
		{"nesting without end", `{"items":[{"kind":"Pod","spec":` + strings.Repeat("[", 20000), []string{"item 1"}},
		{"nesting without end at the top", strings.Repeat("[", 20000), []string{"exceeded max depth"}},
		{"nesting without end in YAML", "a: " + strings.Repeat("[", 20000), []string{"neither JSON nor YAML"}},
		{"YAML larger than is held as a tree", "a: " + strings.Repeat("x", maxYAML), []string{"YAML of more than 32 MiB", command}},
		{"aliases that multiply in YAML", "a: &a [x,x,x,x,x,x,x,x,x]\n" + manyAliases(), []string{"neither JSON nor YAML"}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			_, err := New(Input{Cluster: []byte(tt.text), ClusterName: "c.json"})
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range append(tt.want, "read cluster file c.json: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q:\n%v", part, err)
				}
			}
			if strings.ContainsAny(err.Error(), "\x1b\n\r") {
				t.Errorf("the error acts on a terminal: %q", err)
			}
		})
	}
}

// manyAliases is the "billion laughs" in YAML.
func manyAliases() string {
	var b strings.Builder
	for c := 'b'; c <= 'i'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n")
	}
	return b.String()
}

// Cut anywhere, a cluster file is an error; no half of it is taken for the whole.
func TestClusterFileCutAnywhere(t *testing.T) {
	text := bytes.TrimSpace(kubeList(node("n1", "10.10.0.3", "172.16.1.0/24"), pod("d/a", "172.16.1.7", "n1", "10.10.0.3", "Running")))
	for i := range text {
		if _, err := New(Input{Cluster: text[:i]}); err == nil {
			t.Fatalf("cut at byte %d of %d: no error", i, len(text))
		}
	}
}

// An object larger than any that Kubernetes stores is refused before it is held as a whole.
func TestClusterFileObjectsAreBounded(t *testing.T) {
	big := strings.Repeat(" ", maxItem/2)
	for _, tt := range []struct {
		rule, text string
		ok         bool
	}{
		{"a list of many objects is not an object", `{"items":[{"kind":"Node","metadata":{"name":"a"}},` + big + `{"kind":"Node","metadata":{"name":"b"}},` + big + `{"kind":"Node","metadata":{"name":"c"}}]}`, true},
		{"an item", `{"items":[{"kind":"Node","metadata":{"name":"a"},"spec":{` + big + big + `}}]}`, false},
		{"what is not read", `{"x":"` + big + big + `","kind":"Node","metadata":{"name":"a"}}`, false},
		{"an array of small things", `{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[` + strings.Repeat("{},", maxItem/3) + `{}]}}`, false},
		{"white space between items", `{"items":[{"kind":"Node","metadata":{"name":"a"}}` + big + big + `,{"kind":"Node","metadata":{"name":"b"}}]}`, false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			text := []byte(tt.text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := New(Input{Cluster: text})
			runtime.ReadMemStats(&after)
			if tt.ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "16 MiB") {
				t.Errorf("error %v, want one: %t", err, !tt.ok)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 8*maxItem {
				t.Errorf("%d MiB were allocated for %d MiB of input", got>>20, len(text)>>20)
			}
		})
	}
}

func TestPodStartTimes(t *testing.T) {
	f := mustNew(t, Input{Cluster: kubeList(
		pod("d/a", "172.16.1.7", "n", "10.10.0.3", "Running", obj{"status": obj{"startTime": "2026-11-30T09:30:28Z"}}),
		pod("d/b", "172.16.1.8", "n", "10.10.0.3", "Running", obj{"status": obj{"startTime": "yesterday"}}),
	)})
	if got := f.PodsAt(addr("172.16.1.7")); len(got) != 1 || !got[0].Start.Equal(time.Date(2026, 11, 30, 9, 30, 28, 0, time.UTC)) || got[0].Phase != "Running" || got[0].Node != "n" {
		t.Errorf("%+v", got)
	}
	if got := f.PodsAt(addr("172.16.1.8")); len(got) != 1 || !got[0].Start.IsZero() {
		t.Errorf("%+v", got)
	}
}
