package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Stream returns a stream of server-sent events without secrets that are split over
// several events. The pieces of a text are the strings at the same place in the JSON
// of the events. Secrets within one event are left to Text.
func (r *Redactor) Stream(data []byte) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	roots, texts := map[int]any{}, map[string][]*piece{}
	for i, line := range lines {
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.UseNumber()
		var root any
		if !ok || dec.Decode(&root) != nil {
			continue
		}
		roots[i] = root
		collect(root, "", func(path, text string, set func(string)) {
			texts[path] = append(texts[path], &piece{line: i, text: text, set: set})
		})
	}
	changed := map[int]bool{}
	for _, pieces := range texts {
		r.join(pieces, changed)
	}
	for i := range changed {
		var b bytes.Buffer
		b.WriteString("data: ")
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(roots[i]) // it was JSON
		lines[i] = b.Bytes()
	}
	return bytes.Join(lines, nil)
}

// piece is a string in an event.
type piece struct {
	line int
	text string
	set  func(string)
}

// collect reports the strings in a JSON value that can be replaced.
func collect(v any, path string, found func(path, text string, set func(string))) {
	child := func(key string, v any, set func(any)) {
		if text, ok := v.(string); ok {
			found(path+"/"+key, text, func(s string) { set(s) })
			return
		}
		collect(v, path+"/"+key, found)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			child(key, e, func(s any) { v[key] = s })
		}
	case []any:
		for i, e := range v {
			child(fmt.Sprint(i), e, func(s any) { v[i] = s })
		}
	}
}

// join redacts secrets that lie in more than one piece, and marks the changed lines.
func (r *Redactor) join(pieces []*piece, changed map[int]bool) {
	var whole strings.Builder
	starts, ends := make([]int, len(pieces)), make([]int, len(pieces))
	for i, p := range pieces {
		starts[i] = whole.Len()
		whole.WriteString(p.text)
		ends[i] = whole.Len()
	}
	for _, span := range slices.Backward(r.spans([]byte(whole.String()))) {
		var in []int
		for i := range pieces {
			if starts[i] < span[1] && ends[i] > span[0] {
				in = append(in, i)
			}
		}
		for n, i := range in {
			if len(in) == 1 {
				break
			}
			p, keep := pieces[i], ""
			switch n {
			case 0:
				keep = p.text[:span[0]-starts[i]] + redacted
			case len(in) - 1:
				keep = p.text[span[1]-starts[i]:]
			}
			p.text = keep
			p.set(keep)
			changed[p.line] = true
		}
	}
}

// spans returns where the secrets of a text begin and end, in order and apart.
func (r *Redactor) spans(text []byte) [][2]int {
	var all [][2]int
	for _, form := range r.forms {
		for from := 0; ; {
			i := bytes.Index(text[from:], form)
			if i < 0 {
				break
			}
			all = append(all, [2]int{from + i, from + i + len(form)})
			from += i + len(form)
		}
	}
	for _, shape := range shapes {
		for start, end := shape.find(text, 0); start >= 0; start, end = shape.find(text, end) {
			all = append(all, [2]int{start, end})
		}
	}
	slices.SortFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
	var apart [][2]int
	for _, span := range all {
		if last := len(apart) - 1; last >= 0 && span[0] < apart[last][1] {
			apart[last][1] = max(apart[last][1], span[1])
			continue
		}
		apart = append(apart, span)
	}
	return apart
}
