package jsonrpc_test

import (
	"fmt"
	"testing"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

func ExampleParse() {
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n":9007199254740993}}`))
	fmt.Println(m.Method, string(m.Params), m.HasID(), err)
	fmt.Println(string(jsonrpc.Encode(jsonrpc.Message{Version: "2.0", ID: m.ID, Error: &jsonrpc.Error{Code: -32601, Message: "no <tools>"}})))
	// Output:
	// tools/call {"n":9007199254740993} true <nil>
	// {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no <tools>"}}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":1,"error":"cursor_invalid"}`:                     "-32603 cursor_invalid",
		`{"id":1,"error":{"code":1,"message":"x","data":[ 1]}}`: "1 x [ 1]",
		`{"id":1,"error":7}`:                                    "",
		`[{"id":1}]`:                                            "",
		` 3`:                                                    "",
		``:                                                      "",
		`{"id":`:                                                "",
	} {
		got := ""
		m, err := jsonrpc.Parse([]byte(text))
		if m.Error != nil {
			got = fmt.Sprint(m.Error.Code, " ", m.Error.Message)
			if m.Error.Data != nil {
				got += " " + string(m.Error.Data)
			}
		}
		if (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%s = %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]bool{`{"id":null,"error":{}}`: false, `{"method":"x"}`: false, `{"id":"","result":{}}`: true, `{"id":0}`: true} {
		if m, err := jsonrpc.Parse([]byte(text)); err != nil || m.HasID() != want {
			t.Errorf("%s: HasID %v, %v", text, m.HasID(), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := jsonrpc.Parse(data)
		if err != nil {
			return
		}
		again, err := jsonrpc.Parse(jsonrpc.Encode(m))
		if err != nil || again.Method != m.Method || again.HasID() != m.HasID() {
			t.Errorf("%s became %+v, %v", data, again, err)
		}
	})
}
