package server_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/seed-009c0928/agent/sdk/agent"
)

// A client that starts the agent writes requests as lines.
func ExampleServer_ServeStdio() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	a, err := agent.Open(context.Background(), agent.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	s, err := a.MCPServer(agent.MCPServerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	client := strings.NewReader(`{"jsonrpc": "2.0", "id": 1, "method": "ping"}` + "\n")
	fmt.Println(s.ServeStdio(context.Background(), client, os.Stdout))
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{}}
	// <nil>
}
