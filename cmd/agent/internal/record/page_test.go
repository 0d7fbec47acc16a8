package main

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/browser"
)

// TestPagePicture makes the picture of the web page and checks that there is something
// on it.
func TestPagePicture(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build the agent with")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	data, err := pagePicture(ctx)
	if errors.Is(err, browser.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	colours := map[any]bool{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			colours[img.At(x, y)] = true
		}
	}
	if img.Bounds().Dx() < 1000 || len(colours) < 20 {
		t.Errorf("the picture of %s has %d colours", img.Bounds(), len(colours))
	}
}
