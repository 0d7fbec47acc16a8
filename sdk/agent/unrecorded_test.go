package agent_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// approve approves every call once.
type approve struct{}

func (approve) Ask(context.Context, core.Question) (core.Answer, error) {
	return core.Answer{Choice: core.ChoiceOnce}, nil
}

// TestSensitiveContentsAreNotRecorded lets a model read and write sensitive files
// with the user's approval: it gets the content, but nothing below the agent's home
// has it, and the resumed session has path and size.
func TestSensitiveContentsAreNotRecorded(t *testing.T) {
	needShell(t)
	const secret = "correcthorsebattery"
	pixel := "\x89PNG\r\n\x1a\n" + secret
	long := strings.Repeat("PADDING=of-the-file\n", 20_000) + "PASSWORD=" + secret + "\n"
	for _, tt := range []struct {
		name  string
		calls []model.ToolCall
		path  string // in the record
		blind bool   // the model does not get the content
	}{
		{"read_file", one("read_file", args{"file_path": ".env"}), ".env", false},
		{"read_many_files", one("read_many_files", args{"paths": []string{"a.txt", ".env"}}), ".env", false},
		{"grep", one("grep", args{"pattern": "PASSWORD", "path": ".env", "output_mode": "content"}), ".env", false},
		{"cat", one("shell", args{"command": "cat .env"}), ".env", false},
		{"cat in a script", one("shell", args{"command": "cd . && X=$(cat ./.env); echo \"$X\""}), ".env", false},
		{"cat long", one("shell", args{"command": "cat long/.env"}), "long/.env", false},
		{"image", one("read_file", args{"file_path": "secret.png"}), "secret.png", true},
		{"write", one("write_file", args{"file_path": ".env.new", "content": "PASSWORD=" + secret + "\n"}), ".env.new", true},
		{"append by a command", one("shell", args{"command": "echo PASSWORD=" + secret + " >>.env; cat .env"}), ".env", false},
		{"here-document", one("shell", args{"command": "cat >.env.new <<E\nPASSWORD=" + secret + "\nE\ncat .env.new"}), ".env.new", false},
		{"edit", append(
			one("read_file", args{"file_path": ".env"}),
			one("edit_file", args{"file_path": ".env", "old_string": "PASSWORD=" + secret, "new_string": "PASSWORD=" + secret + "2"})...), ".env", false},
		{"copy", append(
			one("read_file", args{"file_path": ".env"}),
			one("write_file", args{"file_path": "b.txt", "content": "login with " + secret})...), ".env", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			a, _ := open(t, func(o *agent.Options) {
				o.Home, o.Permissions.Mode, o.UnguardedWrites = home, permissions.ModeDefault, true
			}, map[string]string{
				".env": "USER=app\nPASSWORD=" + secret + "\n", "a.txt": "plain\n", "secret.png": pixel, "long/.env": long,
			})
			var script []coretest.Turn
			for _, c := range tt.calls {
				script = append(script, coretest.CallTools(c))
			}
			p := coretest.Model(append(script, coretest.Say("The password is "+map[bool]string{false: secret, true: "?"}[tt.blind]+"."))...)
			s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: p, Profile: core.Profile{Name: "all"}, Asker: approve{}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Submit(t.Context(), core.TextInput("go")); err != nil {
				t.Fatal(err)
			}
			if got := lastResult(t, p); !tt.blind && tt.name != "edit" && tt.name != "copy" && !strings.Contains(got, secret) {
				t.Errorf("the model got %q", got)
			}
			id := s.ID()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			noFileHas(t, home, secret)

			resumed := coretest.Model(coretest.Say("Again."))
			s, err = a.NewSession(t.Context(), agent.SessionOptions{Provider: resumed, Resume: id})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Submit(t.Context(), core.TextInput("again")); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(resumed.Requests()[0].Messages)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte(secret)) || !bytes.Contains(text, []byte("bytes are not recorded")) || !strings.Contains(string(text), tt.path) {
				t.Errorf("the resumed session sends %s", shortened(text))
			}
		})
	}
}

func shortened(b []byte) string { return string(b[:min(len(b), 2000)]) }

// one returns a call.
func one(name string, a args) []model.ToolCall {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return []model.ToolCall{{ID: fmt.Sprintf("%s-%d", name, len(text)), Name: name, Args: string(text)}}
}

// noFileHas checks that no file below dir contains the text.
func noFileHas(t *testing.T, dir, text string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if i := bytes.Index(data, []byte(text)); i >= 0 {
			t.Errorf("%s has the secret: …%s", path, data[max(0, i-300):i+len(text)])
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files: %v", files, err)
	}
}

// TestSensitiveImagesAreNotRecorded: a recording is told the form in which requests have
// the image of a sensitive file, and the records have nothing of it.
func TestSensitiveImagesAreNotRecorded(t *testing.T) {
	noise := image.NewNRGBA(image.Rect(0, 0, 40, 40))
	for i, x := 0, uint32(1); i < len(noise.Pix); i++ {
		x = x*1664525 + 1013904223
		noise.Pix[i] = byte(x >> 24)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, noise); err != nil {
		t.Fatal(err)
	}
	home, hidden := t.TempDir(), &store.Hidden{}
	a, _ := open(t, func(o *agent.Options) { o.Home, o.Permissions.Mode, o.Hidden = home, permissions.ModeDefault, hidden }, map[string]string{"secret.png": picture.String()})
	p := coretest.Model(coretest.CallTools(one("read_file", args{"file_path": "secret.png"})...), coretest.Say("Noise."))
	s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: p, Profile: core.Profile{Name: "all"}, Asker: approve{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Submit(t.Context(), core.TextInput("go")); err != nil {
		t.Fatal(err)
	}
	var sent []byte
	for _, m := range p.Requests()[1].Messages {
		for _, part := range m.Parts {
			if res, ok := part.(model.ToolResult); ok {
				for _, c := range res.Content {
					if img, ok := c.(model.Image); ok {
						sent = img.Data
					}
				}
			}
		}
	}
	if len(sent) == 0 {
		t.Fatal("the model got no image")
	}
	texts, secrets := hidden.Learnt()
	if !slices.Contains(texts, base64.StdEncoding.EncodeToString(sent)) || len(secrets) > 0 {
		t.Errorf("%d texts and the secrets %q are hidden", len(texts), secrets)
	}
	noFileHas(t, home, string(sent[40:80]))
}
