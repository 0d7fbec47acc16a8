package chat

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPastedPaths(t *testing.T) {
	there := []string{"/w/a.png", "/w/my file.txt", "/home/u/b c's.png", "/w/ü.txt"}
	exists := func(path string) bool { return slices.Contains(there, filepath.ToSlash(path)) }
	for text, want := range map[string][]string{
		"/w/a.png":                                {"/w/a.png"},
		"/w/a.png ":                               {"/w/a.png"},
		"/w/my file.txt":                          {"/w/my file.txt"},
		`/w/my\ file.txt`:                         {"/w/my file.txt"},
		`'/w/my file.txt' "/w/a.png"`:             {"/w/my file.txt", "/w/a.png"},
		`'/home/u/b c'\''s.png'`:                  {"/home/u/b c's.png"},
		"~/b\\ c\\'s.png":                         {"/home/u/b c's.png"},
		"file:///w/my%20file.txt":                 {"/w/my file.txt"},
		"file:///w/a.png\r\nfile:///w/%C3%BC.txt": {"/w/a.png", "/w/ü.txt"},
		"/w/a.png /w/gone.png":                    nil,
		"look at /w/a.png":                        nil,
		"a.png":                                   nil,
		"https://example.com/w/a.png":             nil,
		"":                                        nil,
		"'/w/a.png":                               {"/w/a.png"},
	} {
		if got := pastedPaths(text, "/home/u", exists); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAttachable(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		data string
		want bool
	}{
		"text": {"some text\n", true}, "empty": {"", true}, "program": {"\x7fELF\x02\x01\x01\x00\x00", false},
		"image": {"\x89PNG\r\n\x1a\n\x00\x00", true}, "long": {strings.Repeat("ü", 2000), true},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(tt.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := attachable(path); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !attachable(dir) || attachable(filepath.Join(dir, "gone")) {
		t.Error("a directory, or what is not there")
	}
	if got := mentionOf(filepath.Join(dir, "a b"), dir) + mentionOf(filepath.Join(dir, "c"), filepath.Join(dir, "sub")); got != `@"a b"@`+filepath.Join(dir, "c") {
		t.Errorf("mentions %s", got)
	}
}

func TestImageProgram(t *testing.T) {
	for _, tt := range []struct{ goos, display, wayland, installed, want string }{
		{"linux", ":0", "", "xclip", "xclip -selection clipboard -t image/png -o"},
		{"linux", ":0", "wayland-0", "wl-paste", "wl-paste -t image/png"},
		{"darwin", "", "", "pngpaste", "pngpaste -"},
		{"linux", ":0", "", "", "pasting images needs xclip, which is not installed; @FILE attaches an image from a file"},
		{"linux", "", "", "", "there is no desktop here whose clipboard could be read, as over ssh: copy the image to this machine, and enter @FILE"},
		{"windows", "", "", "", "images in the clipboard cannot be read on Windows: save it, and drag the file here"},
	} {
		env := map[string]string{"DISPLAY": tt.display, "WAYLAND_DISPLAY": tt.wayland}
		argv, err := imageProgram(tt.goos, func(name string) string { return env[name] }, func(name string) (string, error) {
			if name == tt.installed {
				return name, nil
			}
			return "", errors.New("not found")
		})
		got := strings.Join(argv, " ")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
