// Command record runs an interactive session of the agent and writes its screen
// as a picture, the one in the README:
//
//	go run ./cmd/agent/internal/record
//
// The session is real, on a pseudo-terminal: keys are typed when the expected
// text is on the screen. Only the model is scripted, and only the temporary
// directory's name is shortened.
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
	svg, err := recordSession(ctx)
	if err == nil {
		err = os.WriteFile(filepath.Join("docs", "session.svg"), svg, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "record, in the root of the repository:", err)
		os.Exit(1)
	}
}
