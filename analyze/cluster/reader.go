package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// A kubeReader reads a row of JSON documents item by item.
type kubeReader struct {
	data   []byte
	dec    *json.Decoder
	src    *boundedReader
	file   *kubeFile
	isJSON bool // the data is the file's own text: offsets and lines mean something to the person
	items  int  // items begun, over all documents
}

// errTooLarge is what a decoder is told that wants to read further than one object may reach.
var errTooLarge = fmt.Errorf("an object of more than %d MiB", maxItem>>20)

// A boundedReader gives data up to a limit that the kubeReader moves on from value to value, so that a decoder, which
// holds a whole value at a time, cannot be made to hold more than one object's worth.
type boundedReader struct {
	data       []byte
	off, limit int
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.off >= len(r.data) {
		return 0, io.EOF
	}
	n := copy(p, r.data[r.off:min(r.limit, len(r.data))])
	r.off += n
	if n == 0 && len(p) > 0 {
		return 0, errTooLarge
	}
	return n, nil
}

func (r *kubeReader) read() error {
	r.src = &boundedReader{data: r.data, limit: maxItem}
	r.dec = json.NewDecoder(r.src)
	for {
		t, err := r.token()
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(r.data[r.dec.InputOffset():])) == 0 {
			return nil
		}
		if err != nil {
			return r.fail("", err)
		}
		switch t {
		case json.Delim('{'):
			err = r.document()
		case json.Delim('['):
			var items []kubeItem
			if items, err = r.list(""); err == nil {
				err = r.keepAll(items, "")
			}
		default:
			err = fmt.Errorf("%s: text behind the objects; the file holds more than what kubectl printed", r.place(r.dec.InputOffset()))
		}
		if err != nil {
			return err
		}
	}
}

// document reads an object behind its brace: a list of objects, or one object.
func (r *kubeReader) document() error {
	self := kubeItem{start: r.dec.InputOffset()}
	isList := false
	var items []kubeItem // that have no kind of their own: it may be said behind them, by the list
	for r.dec.More() {
		key, err := r.token()
		if err != nil {
			return r.fail("", err)
		}
		name, _ := key.(string)
		switch name {
		case "items":
			isList = true
			t, err := r.token()
			if err != nil {
				return r.fail("", err)
			}
			if t == nil {
				continue // null
			}
			if t != json.Delim('[') {
				return fmt.Errorf("%s: items is not a list", r.place(r.dec.InputOffset()))
			}
			more, err := r.list(self.Kind)
			if err != nil {
				return err
			}
			items = append(items, more...)
		case "apiVersion":
			err = r.value(&self, &self.APIVersion, name)
		case "kind":
			err = r.value(&self, &self.Kind, name)
		case "metadata":
			err = r.value(&self, &self.Metadata, name)
		case "spec":
			err = r.value(&self, &self.Spec, name)
		case "status":
			err = r.value(&self, &self.Status, name)
		default:
			err = r.value(&kubeItem{}, &struct{}{}, "")
		}
		if err != nil {
			return err
		}
	}
	if err := r.close('}'); err != nil {
		return err
	}
	if isList {
		return r.keepAll(items, self.Kind)
	}
	r.items++
	self.n = r.items
	return r.keep(&self)
}

// list reads the items of a list behind its bracket and returns those whose kind is not known yet: they have none, and
// the list's kind comes behind them.
func (r *kubeReader) list(kind string) ([]kubeItem, error) {
	var kindless []kubeItem
	for r.dec.More() {
		it := kubeItem{start: r.dec.InputOffset()}
		r.items++
		it.n = r.items
		if err := r.value(&it, &it, ""); err != nil {
			return nil, err
		}
		if it.Kind == "" {
			it.Kind = strings.TrimSuffix(kind, "List")
		}
		if it.Kind == "" {
			kindless = append(kindless, it)
			continue
		}
		if err := r.keep(&it); err != nil {
			return nil, err
		}
	}
	if err := r.close(']'); err != nil {
		return nil, err
	}
	return kindless, nil
}

func (r *kubeReader) keepAll(items []kubeItem, kind string) error {
	for i := range items {
		items[i].Kind = strings.TrimSuffix(kind, "List")
		if err := r.keep(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

// close reads the brace or bracket at which More stopped. More stops at a read error, too, which the next token may have
// got over: then it is not this one.
func (r *kubeReader) close(want json.Delim) error {
	t, err := r.token()
	if err != nil {
		return r.fail("", err)
	}
	if t != want {
		return r.fail("", errTooLarge)
	}
	return nil
}

// token reads the next token.
func (r *kubeReader) token() (json.Token, error) {
	r.src.limit = int(r.dec.InputOffset()) + maxItem
	return r.dec.Token()
}

// value decodes the next value into v, which is it or, under the name field, a part of it. A field of an unexpected type is kept for later: whether it matters
// depends on the kind, which may not be known yet.
func (r *kubeReader) value(it *kubeItem, v any, field string) error {
	start := r.dec.InputOffset()
	r.src.limit = int(start) + maxItem
	err := r.dec.Decode(v)
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if it.typeErr == nil {
			it.typeErr, it.typeErrAt = te, strings.Trim(field+"."+te.Field, ".")
		}
		return nil
	}
	if err != nil {
		what := ""
		if r.items > 0 {
			what = "item " + strconv.Itoa(r.items)
		}
		return r.failAt(what, start, err)
	}
	return nil
}

// fail names the place where the decoder is.
func (r *kubeReader) fail(what string, err error) error {
	return r.failAt(what, r.dec.InputOffset(), err)
}

// failAt says what is wrong with the value that begins behind an offset.
func (r *kubeReader) failAt(what string, start int64, err error) error {
	if what != "" {
		what = ", in " + what
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%s%s: %w, which no Kubernetes object is; make it again with: %s", r.place(start), what, err, clusterCommand)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s%s: the file ends in the middle: it was cut; make it again with: %s",
			r.place(int64(len(r.data))), what, clusterCommand)
	case syntax:
		return fmt.Errorf("%s%s: not JSON: %w", r.place(r.syntaxOffset(start)), what, err)
	}
	return fmt.Errorf("%s%s: %w", r.place(start), what, err)
}

// syntaxOffset finds the offset of a syntax error: a decoder that is read by tokens counts its own wrongly.
func (r *kubeReader) syntaxOffset(start int64) int64 {
	rest := r.data[start:min(len(r.data), int(start)+maxItem)]
	skip := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
	if skip < len(rest) && (rest[skip] == ',' || rest[skip] == ':') {
		skip++ // what stands between values: the decoder takes it with the value behind
	}
	err := json.NewDecoder(bytes.NewReader(rest[skip:])).Decode(&struct{}{})
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		return start + int64(skip) + se.Offset - 1
	}
	return start
}

// place names an offset of the file. Converted YAML has none.
func (r *kubeReader) place(off int64) string {
	if !r.isJSON {
		return "converted from YAML"
	}
	return fmt.Sprintf("line %d (byte %d)", lineAt(r.data, off), off)
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "object"
	case reflect.Slice:
		return "array"
	default:
		return t.Kind().String()
	}
}
