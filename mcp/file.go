package mcp

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// ProjectFile is the name of the file with a project's servers.
const ProjectFile = ".mcp.json"

// serversKey is its key for them.
const serversKey = "mcpServers"

// ParseFile parses a .mcp.json file; name is for errors. Invalid servers are
// reported in the error, with line and column, and left out; the others are
// returned. Warnings are about unknown keys, which other programs may support.
func ParseFile(name string, data []byte) (servers map[string]Server, warnings []string, err error) {
	doc, err := jsonpos.Parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	var root map[string]json.RawMessage
	if err := doc.Decode(&root); err != nil {
		return nil, nil, err
	}
	var all map[string]json.RawMessage
	switch text, ok := root[serversKey]; {
	case !ok:
		return nil, nil, doc.Errorf("", `expected "mcpServers": {"NAME": {…}}`, "missing mcpServers")
	case json.Unmarshal(text, &all) != nil:
		return nil, nil, doc.Errorf("/"+serversKey, "", "%s: expected an object", serversKey)
	}
	servers = map[string]Server{}
	var errs []error
	for _, server := range slices.Sorted(maps.Keys(all)) {
		p := &serverParser{doc: doc, name: server, at: "/" + serversKey + "/" + segment(server)}
		s, err := p.parse(all[server])
		warnings = append(warnings, p.warnings...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		servers[server] = s
	}
	return servers, warnings, errors.Join(errs...)
}

// serverParser parses one server of a file.
type serverParser struct {
	doc      *jsonpos.Document
	name, at string
	warnings []string
}

func (p *serverParser) parse(text json.RawMessage) (Server, error) {
	if err := CheckName(p.name); err != nil {
		return Server{}, p.doc.Errorf(p.at, "", "%v", err)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return Server{}, p.doc.Errorf(p.at, "", "server %s: expected an object", p.name)
	}
	var s Server
	fields := serverFields(&s)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		field, ok := fields[key]
		if !ok {
			hint := ""
			if near := jsonpos.Nearest(key, slices.Collect(maps.Keys(fields))); near != "" {
				hint = "did you mean " + near + "?"
			}
			p.warnings = append(p.warnings, p.doc.Errorf(p.at+"/"+segment(key), hint, "server %s: unknown key %q", p.name, key).Error())
			continue
		}
		if err := jsonpos.Decode("", members[key], field); err != nil {
			message := err.Error()
			if e := (*jsonpos.Error)(nil); errors.As(err, &e) {
				message = e.Message
			}
			return Server{}, p.doc.Errorf(p.at+"/"+segment(key), "", "server %s: %s: %s", p.name, key, message)
		}
	}
	if err := s.Check(); err != nil {
		return Server{}, p.wrong(err)
	}
	return s, nil
}

// wrong adds the position to a [FieldError].
func (p *serverParser) wrong(err error) error {
	e := (*FieldError)(nil)
	if !errors.As(err, &e) {
		return err
	}
	at, what := p.at, "server "+p.name+": "
	if e.Field != "" {
		at += "/" + segment(e.Field)
		what += e.Field + ": "
	}
	return p.doc.Errorf(at, e.Hint, "%s", what+e.Message)
}

// serverFields returns pointers to the fields of a server by their keys.
func serverFields(s *Server) map[string]any {
	v := reflect.ValueOf(s).Elem()
	fields := map[string]any{}
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		fields[key] = v.Field(i).Addr().Interface()
	}
	return fields
}

// segment escapes a key for a JSON pointer.

func segment(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
