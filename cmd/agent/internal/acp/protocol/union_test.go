package protocol_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
)

func TestUnion(t *testing.T) {
	for text, value := range map[string]any{
		`{"type":"text","text":""}`:                                     &protocol.TextContent{},
		`{"type":"resource","resource":{"text":"x","uri":"file:///a"}}`: &protocol.EmbeddedResource{},
		`{"type":"hologram","depth":3}`:                                 json.RawMessage{},
	} {
		var b protocol.ContentBlock
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		if _, unknown := b.Value.(json.RawMessage); unknown {
			if _, want := value.(json.RawMessage); !want || b.Tag != "hologram" {
				t.Errorf("%s is %q, %T", text, b.Tag, b.Value)
			}
			continue
		}
		if again, err := json.Marshal(b); err != nil || string(again) != text {
			t.Errorf("%s became %s, %v", text, again, err)
		}
	}
	var server protocol.MCPServer
	if err := json.Unmarshal([]byte(`{"name":"n","command":"c","args":[],"env":[]}`), &server); err != nil {
		t.Fatal(err)
	}
	if s, ok := server.Value.(*protocol.MCPServerStdio); !ok || s.Command != "c" {
		t.Errorf("a server without a type is %T", server.Value)
	}
	var b protocol.ContentBlock
	if err := json.Unmarshal([]byte(`{"type":3}`), &b); err == nil {
		t.Error("a tag that is not a string is taken")
	}
}

// FuzzUnion: what was decoded is encoded so that it is decoded as the same.
func FuzzUnion(f *testing.F) {
	f.Add([]byte(`{"type":"image","data":"AAAA","mimeType":"image/png"}`))
	f.Add([]byte(`{"type":"x","type":"text","text":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second protocol.ContentBlock
		if json.Unmarshal(data, &first) != nil {
			return
		}
		if _, unknown := first.Value.(json.RawMessage); unknown {
			return // it is never sent
		}
		text, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &second); err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%s became %s: %+v, %v", data, text, second, err)
		}
	})
}
