package repeat

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// worthwhile is the size of a result, in bytes, from which a pointer to an earlier
// one is shorter.
const worthwhile = 200

// Read returns what replaces the content of a result if the conversation has the
// same already: that of an earlier call of the same tool, for the same paths below
// dir. Contents are compared, so a change is never missed.
func Read(conversation []model.Message, call model.ToolCall, content model.Parts, dir string) (brief model.Parts, ok bool) {
	if len(content) != 1 || len(content.Text()) < worthwhile {
		return nil, false
	}
	asked := map[string]bool{} // ids of calls for the same paths
	want := texts(call.Args, dir)
	id := ""
	for _, m := range conversation {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case model.ToolCall:
				asked[p.ID] = p.Name == call.Name && slices.Equal(texts(p.Args, dir), want)
			case model.ToolResult:
				if asked[p.CallID] && !p.IsError && slices.Equal(p.Content, content) {
					id = p.CallID
				}
			}
		}
	}
	if id == "" {
		return nil, false
	}
	return model.TextParts(fmt.Sprintf("Unchanged: this is exactly the result of the call %s above. Use that one.", id)), true
}

// texts returns the strings in a call's arguments, as paths below dir. The other
// arguments need no comparison: they show in the content.
func texts(args, dir string) []string {
	var in map[string]any
	if json.Unmarshal([]byte(args), &in) != nil {
		return []string{args}
	}
	var out []string
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case string:
			clean := path.Clean(strings.ReplaceAll(v, `\`, "/"))
			out = append(out, strings.TrimPrefix(clean, strings.TrimSuffix(strings.ReplaceAll(dir, `\`, "/"), "/")+"/"))
		case []any:
			for _, e := range v {
				add(e)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		add(in[name])
	}
	return out
}
