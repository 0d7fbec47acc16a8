package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestTypes compares the types with the schema.
func TestTypes(t *testing.T) {
	schema, err := os.Open(filepath.Join("..", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer schema.Close()
	want, err := generate(schema)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join("..", "types.go")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("types.go is not made of schema.json: run go generate in cmd/agent/internal/acp/protocol (%v)", err)
	}
}
