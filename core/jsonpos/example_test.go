package jsonpos_test

import (
	"fmt"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

func ExampleDecode() {
	var v struct {
		Model     string `json:"model"`
		MaxTokens int    `json:"maxTokens"`
	}
	fmt.Println(jsonpos.Decode("settings.json", []byte("{\n  \"modle\": \"x\"\n}"), &v))
	fmt.Println(jsonpos.Decode("settings.json", []byte("{\n  \"maxTokens\": \"4k\"\n}"), &v))
	// Output:
	// settings.json:2:3: unknown key "modle" at the top level; did you mean "model"?
	// settings.json:2:16: /maxTokens: expected a whole number, found a string
}
