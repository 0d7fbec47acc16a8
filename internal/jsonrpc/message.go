package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Message is a message of any kind: a request has a method and an ID, a
// notification only a method, and a response an ID with a result or an error. Its
// raw values are kept byte for byte.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"` // null in the response to an unreadable message
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// The codes of errors that JSON-RPC defines.
const (
	CodeParse    = -32700 // not JSON
	CodeRequest  = -32600 // not a message
	CodeMethod   = -32601 // an unknown method
	CodeParams   = -32602
	CodeInternal = -32603
)

// Error is an error response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// UnmarshalJSON implements [json.Unmarshaler]. It also accepts a string, as some
// servers send.
func (e *Error) UnmarshalJSON(data []byte) error {
	type object Error
	err := json.Unmarshal(data, (*object)(e))
	if err != nil && json.Unmarshal(data, &e.Message) == nil {
		e.Code, err = CodeInternal, nil
	}
	return err
}

// HasID reports whether the message is a request or a response.
func (m Message) HasID() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// Parse decodes one message. It does not check that the message is of a known
// kind.
func Parse(data []byte) (Message, error) {
	var m Message
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return m, fmt.Errorf("expected an object, not %.20q", data)
	}
	err := json.Unmarshal(data, &m)
	return m, err
}

// Encode returns v as JSON, without HTML escapes or trailing newline. It is for
// types that can always be encoded.
func Encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
