package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDiff limits how many differences are reported.
const maxDiff = 20

// differ collects where two requests differ.
type differ struct {
	ignore []*regexp.Regexp
	lines  []string
}

func (d *differ) add(path, format string, args ...any) {
	switch {
	case len(d.lines) == maxDiff:
		d.lines = append(d.lines, "…")
	case len(d.lines) < maxDiff:
		d.lines = append(d.lines, path+": "+fmt.Sprintf(format, args...))
	}
}

func (d *differ) header(recorded, now map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(join(recorded, now))) {
		d.value("header "+name, recorded[name], now[name])
	}
}

// body compares bodies, as values if both are JSON: the order of members and white
// space do not matter, the digits of a number do.
func (d *differ) body(recorded, now body) {
	if recorded == now {
		return
	}
	was, ok1 := parse(recorded.Text)
	is, ok2 := parse(now.Text)
	if ok1 && ok2 {
		d.json("", was, is)
		return
	}
	d.value("body", recorded.Text+recorded.Base64, now.Text+now.Base64)
}

func parse(text string) (v any, ok bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil, false
	}
	return v, !dec.More()
}

func (d *differ) json(path string, recorded, now any) {
	switch was := recorded.(type) {
	case map[string]any:
		if is, ok := now.(map[string]any); ok {
			d.object(path, was, is)
			return
		}
	case []any:
		if is, ok := now.([]any); ok {
			d.array(path, was, is)
			return
		}
	case string:
		if is, ok := now.(string); ok {
			d.value(path, was, is)
			return
		}
	default:
		if recorded == now {
			return
		}
	}
	d.add(orBody(path), "recorded %s, now %s", shown(recorded), shown(now))
}

func (d *differ) object(path string, recorded, now map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(join(recorded, now))) {
		at := strings.TrimPrefix(path+"."+name, ".")
		was, before := recorded[name]
		is, after := now[name]
		switch {
		case !after:
			d.add(at, "recorded %s, now missing", shown(was))
		case !before:
			d.add(at, "not recorded, now %s", shown(is))
		default:
			d.json(at, was, is)
		}
	}
}

func (d *differ) array(path string, recorded, now []any) {
	for i := range max(len(recorded), len(now)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(now):
			d.add(at, "recorded %s, now missing", shown(recorded[i]))
		case i >= len(recorded):
			d.add(at, "not recorded, now %s", shown(now[i]))
		default:
			d.json(at, recorded[i], now[i])
		}
	}
}

// value compares strings, and reports them around their first difference.
func (d *differ) value(path, recorded, now string) {
	if recorded == now || d.plain(recorded) == d.plain(now) {
		return
	}
	at := 0
	for at < len(recorded) && at < len(now) && recorded[at] == now[at] {
		at++
	}
	d.add(orBody(path), "recorded %s, now %s", around(recorded, at), around(now, at))
}

// plain returns a string without the parts that may differ.
func (d *differ) plain(s string) string {
	for _, re := range d.ignore {
		s = re.ReplaceAllLiteralString(s, "~")
	}
	return s
}

func orBody(path string) string {
	if path == "" {
		return "body"
	}
	return path
}

// around quotes the part of s around an index.
func around(s string, at int) string {
	const before, after = 20, 60
	from, to := max(0, at-before), min(len(s), at+after)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	text := fmt.Sprintf("%q", s[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(s) {
		text += "…"
	}
	return text
}

// shown returns a JSON value, shortened.
func shown(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return fmt.Sprint(v)
	}
	const maxLength = 100
	text := strings.TrimSpace(b.String())
	if len(text) > maxLength {
		text = strings.ToValidUTF8(text[:maxLength], "") + "…"
	}
	return text
}

// join returns a map with the keys of both.
func join[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(b)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, a)
	return all
}
