// Command record runs sessions of the agent and writes the pictures in the docs:
//
//	go run ./cmd/agent/internal/record
//
// The interactive session of the README is real, on a pseudo-terminal: keys are typed
// when the expected text is on the screen. Only the model is scripted, and only the
// temporary directory's name is shortened. The web page is that of the session of agent
// demo, in a headless Chromium.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, p := range []struct {
		name string
		make func(context.Context) ([]byte, error)
	}{{"session.svg", recordSession}, {"session-page.png", pagePicture}} {
		data, err := p.make(ctx)
		if err == nil {
			err = os.WriteFile(filepath.Join("docs", p.name), data, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "record, in the root of the repository: %s: %v\n", p.name, err)
			os.Exit(1)
		}
	}
}
