package config

import (
	_ "embed"
	"fmt"
	"reflect"
	"strings"
)

//go:embed configuration.md
var introduction string

// page returns docs/configuration.md.
func page() []byte {
	var b strings.Builder
	b.WriteString(introduction)
	groups := map[string][]field{}
	var order []string
	for _, f := range append(fields(), namedFields("NAME")...) {
		group := ""
		if i := strings.LastIndexByte(f.key, '.'); i >= 0 {
			group = f.key[:i]
		}
		if _, ok := groups[group]; !ok {
			order = append(order, group)
		}
		groups[group] = append(groups[group], f)
	}
	for _, group := range order {
		title, doc := "The file itself", ""
		if group != "" {
			title, doc = "`"+group+"`", groupDoc(group)
		}
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		if doc != "" {
			b.WriteString(doc + "\n\n")
		}
		b.WriteString("| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n")
		for _, f := range groups[group] {
			b.WriteString(f.row())
		}
	}
	b.WriteString("\nNext: [model providers](providers.md)\n")
	return []byte(b.String())
}

// groupDoc returns the documentation of a group of keys.
func groupDoc(group string) string {
	if group == "providers.NAME" {
		return "A provider that you define, under any name of lower-case letters, digits, - and _, or a preset; see providers.md."
	}
	t, doc := reflect.TypeFor[Settings](), ""
	for _, name := range strings.Split(group, ".") {
		for i := range t.NumField() {
			if f := t.Field(i); jsonName(f) == name {
				t, doc = f.Type, f.Tag.Get("doc")
				break
			}
		}
	}
	return doc
}

// row is a field's line in a table.
func (f field) row() string {
	kind := map[string]string{"integer": "whole number", "array": "list of strings", "object": "object", "": "number"}[f.schema().Type]
	if kind == "" {
		kind = f.schema().Type
	}
	switch {
	case f.typ == secretType:
		kind = "key"
	case f.typ.Kind() == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct:
		kind = "list of objects"
	}
	if e := f.enum(); e != nil {
		kind = "`" + strings.Join(e, "`, `") + "`"
	}
	def := "–"
	if text := f.tag.Get("default"); text != "" {
		def = "`" + text + "`"
	}
	doc := f.tag.Get("doc")
	if len(f.env) > 0 {
		doc += fmt.Sprintf(" Environment: `%s`.", strings.Join(f.env, "`, `"))
	}
	if f.userOnly() {
		doc += " Not allowed in a project's file."
	}
	if f.appends() {
		doc += " Lists of all layers are joined."
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", f.key, kind, def, strings.ReplaceAll(doc, "|", `\|`))
}
