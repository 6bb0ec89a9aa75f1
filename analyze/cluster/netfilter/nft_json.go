package netfilter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What nft -j list ruleset prints (libnftables-json(5)).

// nftNamed is a table, chain, rule, set or map.
type nftNamed struct {
	Family, Table, Name, Type, Hook, Policy, Chain, Comment string
	Prio                                                    *int
	Flags                                                   any
	Elem, Expr                                              []any
}

// readNFTJSON reads one ruleset. Objects of a kind that does not matter are left out.
func (rs *Ruleset) readNFTJSON(text string) error {
	var all struct{ NFTables []map[string]json.RawMessage }
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return fmt.Errorf("nft's JSON: %w", err)
	}
	for n, o := range all.NFTables {
		for kind, raw := range o {
			if err := rs.nftObject(kind, raw, n+1); err != nil {
				return fmt.Errorf("nft's JSON: object %d: %w", n+1, err)
			}
		}
	}
	rs.noElements()
	rs.spread()
	rs.Texts++
	return nil
}

func (rs *Ruleset) nftObject(kind string, raw json.RawMessage, nth int) error {
	switch kind {
	case "table", "chain", "rule", "set", "map":
	default:
		return nil
	}
	var o nftNamed
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		// "type" is a list where a set's elements have several parts.
		var loose map[string]any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if err := d.Decode(&loose); err != nil {
			return err
		}
		text := func(k string) string { s, _ := loose[k].(string); return s }
		o = nftNamed{Family: text("family"), Table: text("table"), Name: text("name")}
		o.Flags = loose["flags"]
		o.Elem, _ = loose["elem"].([]any)
		if kind != "set" && kind != "map" {
			return err
		}
	}
	name := o.Table
	if kind == "table" {
		name = o.Name
	}
	t, matters := rs.nftTable(o.Family, name)
	if !matters {
		return nil
	}
	switch kind {
	case "table":
		switch flags := fmt.Sprint(o.Flags); {
		case strings.Contains(flags, "dormant"):
			t.dormant = true
		case o.Flags != nil && flags != "owner" && flags != "persist": // nft 1.0.6 writes another word for dormant
			t.odd = true
		}
	case "set", "map":
		s := &nftSet{odd: nftChanges(fmt.Sprint(o.Flags))}
		for _, e := range o.Elem {
			if kind == "map" {
				s.add(jsonMapElement(e))
				continue
			}
			item, ok := jsonItem(e)
			s.items, s.odd = append(s.items, item), s.odd || !ok
		}
		if rs.nftSets == nil {
			rs.nftSets = make(map[string]*nftSet)
		}
		rs.nftSets[nftSetName(t, o.Name)] = s
	case "chain":
		c := t.chain(o.Name)
		c.declared = true
		if t.odd {
			c.around = "is of a table with flags that this tool does not know: it may not be in force"
		}
		c.nat = o.Type == "nat"
		c.hook, _ = nftHook(o.Hook)
		c.drops = o.Policy == "drop"
		if o.Prio != nil {
			c.priority = *o.Prio
		}
	case "rule":
		text, _ := json.Marshal(o.Expr) // what was decoded can be encoded
		r := &nftRule{t: t}
		r.fromJSON(o.Expr)
		for _, part := range r.rules(&rule{text: string(text), line: nth}) {
			t.chain(o.Chain).add(part)
		}
	}
	return nil
}

// fromJSON reads a rule's expressions.
func (p *nftRule) fromJSON(exprs []any) {
	for _, e := range exprs {
		named, ok := e.(map[string]any)
		if !ok { // what nft has no JSON for stands there as text: a chain within the rule
			p.when(unknown(fmt.Sprint(e), ""), true)
			p.target = target{verdict: opaque, name: "a part of the rule that nft has no JSON for"}
		}
		for name, v := range named {
			args, _ := v.(map[string]any)
			switch name {
			case "match":
				p.matchJSON(args)
			case "counter", "log", "comment", "continue":
			case "jump", "goto":
				to, ok := args["target"].(string)
				if !ok {
					p.target = target{verdict: opaque, name: "a chain within the rule"}
					continue
				}
				p.target = target{verdict: jump, name: to}
				if name == "goto" {
					p.target.verdict = jumpAway
				}
			case "mangle":
				p.mangleJSON(args)
			case "vmap":
				p.vmapJSON(args)
			case "xt":
				p.xtJSON(args)
			default:
				if t, ok := nftTarget(name); ok {
					t.random = strings.Contains(fmt.Sprint(args["flags"]), "random") || args["port"] != nil
					if name == "snat" {
						if item, ok := jsonItem(args["addr"]); ok && len(item.parts) == 1 {
							t.to = item.parts[0].String()
						}
					}
					if text, _ := json.Marshal(args); strings.Contains(string(text), `"map":`) { // what is in no map is not translated
						t.to = ""
						p.when(unknown(string(text), ""), false)
					}
					p.target = t
					continue
				}
				text, _ := json.Marshal(e)
				p.when(unknown(string(text), ""), true)
				if name != "limit" && name != "quota" {
					p.mark = anyMark
				}
			}
		}
	}
}

// xtJSON reads an expression of iptables' that nft does not know: {"xt": {"type": "match", "name": "set"}}.
func (p *nftRule) xtJSON(args map[string]any) {
	kind, _ := args["type"].(string)
	name, _ := args["name"].(string)
	if kind == "target" {
		p.xtTarget(name)
		return
	}
	if kind == "match" && name == "comment" { // asks for nothing
		return
	}
	p.when(unknown(strings.TrimSpace("xt "+kind+" "+name), "iptables-save, which prints what nft hides of this rule"), true)
	if kind == "" {
		p.target = target{verdict: opaque, name: "xt"}
	}
}

// fieldJSON is the name of a field as the text has it.
func fieldJSON(v any) (field string, ok bool) {
	m, _ := v.(map[string]any)
	for kind, arg := range m {
		a, _ := arg.(map[string]any)
		key, _ := a["key"].(string)
		switch kind {
		case "payload":
			proto, ok := a["protocol"].(string)
			name, ok2 := a["field"].(string)
			return proto + " " + name, ok && ok2
		case "meta", "ct":
			return kind + " " + key, key != "" && a["dir"] == nil
		case "fib":
			flags, _ := a["flags"].([]any)
			result, _ := a["result"].(string)
			if s, isText := a["flags"].(string); isText {
				flags = []any{s}
			}
			if len(flags) != 1 {
				return "fib", false
			}
			return fmt.Sprint("fib ", flags[0], " ", result), true
		}
		return kind, false
	}
	return "", false
}

// fieldsJSON reads what is compared or looked up: one field, or several that belong together.
func (m *nftMatch) fieldsJSON(v any) {
	parts := []any{v}
	if of, _ := v.(map[string]any); of["concat"] != nil {
		if parts, _ = of["concat"].([]any); len(parts) == 0 {
			parts = []any{nil} // no field at all is none that is known
		}
	}
	for _, part := range parts {
		field, ok := fieldJSON(part)
		m.fields, m.odd = append(m.fields, field), m.odd || !ok
	}
}

func (p *nftRule) matchJSON(args map[string]any) {
	text, _ := json.Marshal(args)
	m := nftMatch{text: string(text)}
	odd := func() { p.when(unknown(m.text, ""), true) }
	op, _ := args["op"].(string)
	switch op {
	case "==", "in":
	case "!=":
		m.not = true
	default:
		odd()
		return
	}
	left, _ := args["left"].(map[string]any)
	if and, ok := left["&"].([]any); ok && len(and) == 2 {
		field, ok := fieldJSON(and[0])
		if field == "tcp flags" && ok {
			c := tcpFlags(m.text, words32(and[1]), words32(args["right"]), false)
			if m.not {
				c = c.not()
			}
			p.when(all(m.text, onProtocol(m.text, 6), c), false)
			return
		}
		n, isNumber := and[1].(json.Number)
		v, ok2 := number32(n.String())
		if !ok || !isNumber || !ok2 {
			odd()
			return
		}
		m.fields, m.mask = []string{field}, &v
	} else {
		m.fieldsJSON(args["left"])
	}
	if right, _ := args["right"].(map[string]any); m.fields[0] == "tcp flags" && right["set"] != nil {
		odd() // one of several combinations
		return
	}
	if m.fields[0] == "tcp flags" {
		c := tcpFlags(m.text, nil, words32(args["right"]), true)
		if op != "in" {
			c = tcpFlags(m.text, []string{"ALL"}, words32(args["right"]), false)
		}
		if m.not {
			c = c.not()
		}
		p.when(all(m.text, onProtocol(m.text, 6), c), false)
		return
	}
	switch right := args["right"].(type) {
	case string:
		if name, ok := strings.CutPrefix(right, "@"); ok {
			m.set = nftSetName(p.t, name)
			break
		}
		m.values = []nftItem{{[]nftPart{{from: right}}}}
	case []any: // ct state established,new
		for _, v := range right {
			item, ok := jsonItem(v)
			m.values, m.odd = append(m.values, item), m.odd || !ok
		}
	case map[string]any:
		list, ok := right["set"].([]any)
		if !ok {
			list = []any{right}
		}
		for _, v := range list {
			item, ok := jsonItem(v)
			m.values, m.odd = append(m.values, item), m.odd || !ok
		}
	default:
		item, ok := jsonItem(right)
		m.values, m.odd = []nftItem{item}, m.odd || !ok
	}
	p.when(m.condition(), m.ofMark())
}

// vmapJSON reads what a rule looks up in a map of verdicts.
func (p *nftRule) vmapJSON(args map[string]any) {
	text, _ := json.Marshal(args)
	look := &nftLookup{key: nftMatch{text: string(text)}}
	look.key.fieldsJSON(args["key"])
	switch data := args["data"].(type) {
	case string:
		look.of = nftSetName(p.t, strings.TrimPrefix(data, "@"))
	case map[string]any:
		list, ok := data["set"].([]any)
		for _, e := range list {
			look.own.add(jsonMapElement(e))
		}
		look.own.odd = look.own.odd || !ok
	default:
		look.own.odd = true
	}
	p.looksUp(look)
}

// jsonMapElement reads [KEY, {"goto": {"target": "CHAIN"}}].
func jsonMapElement(v any) (key nftItem, t target, ok bool) {
	pair, _ := v.([]any)
	t, ok2 := mapVerdict("", "")
	if len(pair) != 2 {
		return key, t, false
	}
	key, ok = jsonItem(pair[0])
	does, _ := pair[1].(map[string]any)
	for word, args := range does {
		to, _ := args.(map[string]any)
		chain, _ := to["target"].(string)
		t, ok2 = mapVerdict(word, chain)
	}
	return key, t, ok && ok2 && len(does) == 1
}

// words32 reads one word or a list of them.
func words32(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			out = append(out, fmt.Sprint(e))
		}
	case map[string]any:
		for _, e := range v {
			if list, ok := e.([]any); ok {
				out = append(out, words32(list)...)
			}
		}
	default:
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// jsonItem reads a value: a word, a number, a prefix, a range, a concatenation, or an element with options.
func jsonItem(v any) (item nftItem, ok bool) {
	one := func(p nftPart) nftItem { return nftItem{[]nftPart{p}} }
	switch v := v.(type) {
	case string:
		return one(nftPart{from: v}), true
	case json.Number:
		return one(nftPart{from: v.String()}), true
	case map[string]any:
		if p, ok := v["prefix"].(map[string]any); ok {
			addr, _ := p["addr"].(string)
			return one(nftPart{from: addr + "/" + fmt.Sprint(p["len"])}), addr != ""
		}
		if r, ok := v["range"].([]any); ok && len(r) == 2 {
			return one(nftPart{fmt.Sprint(r[0]), fmt.Sprint(r[1])}), true
		}
		if c, ok := v["concat"].([]any); ok {
			for _, e := range c {
				sub, ok := jsonItem(e)
				if !ok || len(sub.parts) != 1 {
					return item, false
				}
				item.parts = append(item.parts, sub.parts[0])
			}
			return item, true
		}
		if e, ok := v["elem"].(map[string]any); ok {
			return jsonItem(e["val"])
		}
	}
	return item, false
}

// mangleJSON reads the statement that sets a field.
func (p *nftRule) mangleJSON(args map[string]any) {
	field, _ := fieldJSON(args["key"])
	if field != "meta mark" && field != "ct mark" {
		p.rewrites = p.rewrites || rewritten(field)
		return
	}
	from, ops, err := markJSON(args["value"])
	p.setsMark(nftMark(field == "ct mark", from, ops, err == nil))
}

var errMark = errors.New("not a mark")

func markJSON(v any) (from string, ops []nftMarkOp, err error) {
	if n, ok := v.(json.Number); ok {
		i, err := strconv.ParseUint(n.String(), 10, 32)
		return "", []nftMarkOp{{"", uint32(i)}}, err
	}
	if field, ok := fieldJSON(v); ok && (field == "meta mark" || field == "ct mark") {
		return field, nil, nil
	}
	m, _ := v.(map[string]any)
	for _, op := range []string{"&", "|", "^"} {
		args, ok := m[op].([]any)
		if !ok || len(args) != 2 {
			continue
		}
		n, ok := args[1].(json.Number)
		if !ok {
			return "", nil, errMark
		}
		i, err := strconv.ParseUint(n.String(), 10, 32)
		if err != nil {
			return "", nil, errMark
		}
		from, ops, err := markJSON(args[0])
		return from, append(ops, nftMarkOp{op, uint32(i)}), err
	}
	return "", nil, errMark
}
