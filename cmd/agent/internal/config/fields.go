package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// field is a key of the settings that holds a value.
type field struct {
	key   string // dotted, as in "agent.maxRounds"
	index []int  // for reflect's FieldByIndex
	typ   reflect.Type
	tag   reflect.StructTag
	named string   // of a field of NamedProvider: the provider
	env   []string // the environment variables that set it, the first that is set
}

var secretType = reflect.TypeFor[Secret]()

// fields lists all keys in the order of Settings. The list is shared.
var fields = sync.OnceValue(func() []field { return slices.Clip(fieldsOf(reflect.TypeFor[Settings](), "", nil)) })

func fieldsOf(t reflect.Type, prefix string, index []int) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" {
			continue
		}
		at := append(slices.Clone(index), i)
		key := prefix + jsonName(f)
		if f.Type.Kind() == reflect.Struct && f.Type != secretType {
			list = append(list, fieldsOf(f.Type, key+".", at)...)
			continue
		}
		var env []string
		if names := f.Tag.Get("env"); names != "" {
			env = strings.Split(names, ",")
		}
		list = append(list, field{key: key, index: at, typ: f.Type, tag: f.Tag, env: env})
	}
	return list
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func (f field) pointer() string { return "/" + strings.ReplaceAll(f.key, ".", "/") }

func (f field) userOnly() bool { return f.tag.Get("scope") == "user" }

func (f field) appends() bool { return f.tag.Get("merge") == "append" }

func (f field) enum() []string {
	if e := f.tag.Get("enum"); e != "" {
		return strings.Split(e, ",")
	}
	return nil
}

// bound returns the number of a "min" or "max" tag.
func (f field) bound(name string) (float64, bool) {
	n, err := strconv.ParseFloat(f.tag.Get(name), 64)
	return n, err == nil
}

// value returns the value in s. A named provider that is not there is added.
func (f field) value(s *Settings) reflect.Value {
	if f.named != "" {
		p := &s.Providers
		if p.Named == nil {
			p.Named = map[string]*NamedProvider{}
		}
		if p.Named[f.named] == nil {
			p.Named[f.named] = &NamedProvider{}
		}
		return reflect.ValueOf(p.Named[f.named]).Elem().FieldByIndex(f.index)
	}
	return reflect.ValueOf(s).Elem().FieldByIndex(f.index)
}

// defaults returns the default settings, from the tags.
func defaults() (*Settings, error) {
	s := &Settings{}
	for _, f := range fields() {
		text := f.tag.Get("default")
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), f.value(s).Addr().Interface()); err != nil {
			return nil, fmt.Errorf("default of %s: %w", f.key, err)
		}
	}
	s.Providers.addPresets()
	return s, nil
}

// problem is what is wrong with a value.
type problem struct {
	message, hint string
	entry         string // JSON pointer of an entry within the value; may be empty
}

// check checks what the type alone does not ensure.
func (f field) check(s *Settings) *problem { return f.checkValue(f.value(s)) }

func (f field) checkValue(v reflect.Value) *problem {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return f.checkString(v.String())
	case reflect.Int:
		return f.checkNumber(float64(v.Int()))
	case reflect.Float64:
		return f.checkNumber(v.Float())
	case reflect.Map:
		return f.checkTable(v)
	case reflect.Slice:
		for i := range v.Len() {
			if strings.TrimSpace(v.Index(i).String()) == "" {
				return &problem{fmt.Sprintf("%s: entry %d is empty", f.key, i+1), "remove it", fmt.Sprintf("/%d", i)}
			}
		}
	}
	return nil
}

// checkTable checks the numbers in a table of structs.
func (f field) checkTable(v reflect.Value) *problem {
	if f.typ.Elem().Kind() != reflect.Struct {
		return nil
	}
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names {
		for i := range f.typ.Elem().NumField() {
			at := f.typ.Elem().Field(i)
			if at.Tag.Get("min") == "" && at.Tag.Get("max") == "" {
				continue
			}
			one := field{key: strings.Join([]string{f.key, name.String(), jsonName(at)}, "."), typ: at.Type, tag: at.Tag}
			if p := one.checkValue(v.MapIndex(name).Field(i)); p != nil {
				p.entry = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name.String()) + "/" + jsonName(at)
				return p
			}
		}
	}
	return nil
}

func (f field) checkString(s string) *problem {
	enum := f.enum()
	if len(enum) > 0 && !slices.Contains(enum, s) && (s != "" || f.tag.Get("default") != "") {
		return &problem{
			fmt.Sprintf("%s: invalid value %q: expected one of %s", f.key, s, strings.Join(enum, ", ")),
			didYouMean(s, enum), "",
		}
	}
	if f.tag.Get("format") != "url" || s == "" && f.tag.Get("default") == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return &problem{f.key + ": expected an http or https URL", `such as "https://example.com/v1"`, ""}
	case u.User != nil:
		return &problem{f.key + ": the URL must not contain a user name or password", "use apiKey for a key", ""}
	case u.RawQuery != "" || u.Fragment != "":
		return &problem{f.key + ": the URL must not have a query or fragment", "remove everything after the path", ""}
	}
	return nil
}

// didYouMean returns the hint for a misspelt word, empty when nothing is near.
func didYouMean(word string, candidates []string) string {
	if near := jsonpos.Nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

func (f field) checkNumber(n float64) *problem {
	if least, ok := f.bound("min"); ok && n < least {
		return &problem{fmt.Sprintf("%s: %v is too small", f.key, n), fmt.Sprintf("the minimum is %v", least), ""}
	}
	if most, ok := f.bound("max"); ok && n > most {
		return &problem{fmt.Sprintf("%s: %v is too large", f.key, n), fmt.Sprintf("the maximum is %v", most), ""}
	}
	return nil
}
