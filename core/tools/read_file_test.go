package tools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
)

func numberedLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "text of line %d\n", i+1)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	where := env.NewMemory("", map[string]string{
		"two.txt":     "one\ntwo\n",
		"open.txt":    "one\ntwo",
		"blank.txt":   "\n\n",
		"empty.txt":   "",
		"crlf.txt":    "one\r\ntwo\r\n",
		"bom.txt":     "\uFEFFone\n",
		"ten.txt":     numberedLines(10),
		"long.txt":    numberedLines(2500),
		"latin.txt":   strings.Repeat("plain words ", 10) + "caf\xe9\n",
		"dir/":        "",
		"main.go":     "package main\n",
		"main_dir.go": "package main\n",
	})
	tests := []struct {
		name string
		in   args
		code core.ErrorCode
		want string
	}{
		{"lines", args{"file_path": "two.txt"}, "", "1 | one\n2 | two"},
		{"absolute", args{"file_path": "/workspace/two.txt"}, "", "1 | one\n2 | two"},
		{"no line feed at the end", args{"file_path": "open.txt"}, "", "1 | one\n2 | two"},
		{"blank lines", args{"file_path": "blank.txt"}, "", "1 | \n2 | "},
		{"empty", args{"file_path": "empty.txt"}, "", "(The file is empty.)"},
		{"CRLF", args{"file_path": "crlf.txt"}, "", "1 | one\n2 | two"},
		{"byte order mark", args{"file_path": "bom.txt"}, "", "1 | one"},
		{
			"numbers are aligned",
			args{"file_path": "ten.txt", "offset": 9},
			"", " 9 | text of line 9\n10 | text of line 10",
		},
		{
			"offset and limit",
			args{"file_path": "ten.txt", "offset": 2, "limit": 1},
			"", "2 | text of line 2\n(lines 2–2 of 10; use offset 3 to continue)",
		},
		{
			"offset behind the end",
			args{"file_path": "ten.txt", "offset": 11},
			core.CodeValidation, `offset 11 is past the end of "ten.txt", which has 10 lines. Use an offset from 1 to 10.`,
		},
		{
			"negative offset",
			args{"file_path": "ten.txt", "offset": -1},
			core.CodeValidation, "offset and limit cannot be negative. Offset counts lines from 1.",
		},
		{"invalid bytes", args{"file_path": "latin.txt"}, "", "1 | " + strings.Repeat("plain words ", 10) + "café\n(The file is in Windows-1252; edits keep that.)"},
		{"directory", args{"file_path": "dir"}, core.CodeIO, `"dir" is a directory. Use list_dir to list it.`},
		{
			"not found",
			args{"file_path": "no/such"},
			core.CodeNotFound, `File not found: "no/such". Find the right path with glob or list_dir.`,
		},
		{"no path", args{"file_path": ""}, core.CodeValidation, "file_path is empty. Give the path of a file."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { check(t, tools.ReadFile(), where, tt.in, tt.code, tt.want) })
	}

	t.Run("2000 lines at most", func(t *testing.T) {
		_, got := run(t, tools.ReadFile(), where, args{"file_path": "long.txt"})
		lines := strings.Split(got, "\n")
		if lines[0] != "   1 | text of line 1" || lines[1999] != "2000 | text of line 2000" {
			t.Errorf("lines %q … %q", lines[0], lines[1999])
		}
		if last := lines[len(lines)-1]; last != "(lines 1–2000 of 2500; use offset 2001 to continue)" {
			t.Errorf("last line %q", last)
		}
	})
}

// A wrong name is answered with similar names in a readable directory.
func TestReadFileNearNames(t *testing.T) {
	where := env.NewMemory("", map[string]string{"src/main.go": "", "src/main_test.go": "", "src/zebra.txt": ""})
	call := &core.Call{Args: []byte(`{"file_path":"src/mian.go"}`), Env: where}
	result, err := tools.ReadFile().Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	got := model.Parts(result.Content).Text()
	if want := `File not found: "src/mian.go". Did you mean src/main.go?`; result.Code != core.CodeNotFound || got != want {
		t.Errorf("%s: %s\nwant %s", result.Code, got, want)
	}
}

func TestReadFileBinary(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"NUL": {"text\x00text", "binary data"},
		"ELF": {"\x7fELF\x02\x01\x01\x00", "an ELF program"},
		"PDF": {"%PDF-1.7\nplain", "pdftotext"},
		"ZIP": {"PK\x03\x04\x14\x00", "a ZIP archive"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			where := env.NewMemory("", map[string]string{"f": tt.content})
			checkHas(t, tools.ReadFile(), where, args{"file_path": "f"}, core.CodeIO, "not a text file", tt.want, "shell")
		})
	}
	// A rune cut at the end of the sniffed part is not binary data.
	cut := strings.Repeat("x", 8<<10-1) + "é\n"
	checkHas(t, tools.ReadFile(), env.NewMemory("", map[string]string{"f": cut}), args{"file_path": "f"}, "", "xé")
}

func TestReadFileImage(t *testing.T) {
	for mediaType, magic := range map[string]string{
		"image/png":  "\x89PNG\r\n\x1a\n\x00",
		"image/jpeg": "\xff\xd8\xff\xe0\x00",
		"image/gif":  "GIF89a\x00",
		"image/webp": "RIFF\x10\x00\x00\x00WEBPVP8 ",
	} {
		t.Run(mediaType, func(t *testing.T) {
			where := env.NewMemory("", map[string]string{"f": magic, "big": magic + strings.Repeat("x", 5<<20)})
			result, _ := run(t, tools.ReadFile(), where, args{"file_path": "f"})
			if len(result.Content) != 2 {
				t.Fatalf("content %v", result.Content)
			}
			image, ok := result.Content[1].(model.Image)
			if !ok || image.MediaType != mediaType || string(image.Data) != magic || image.Bytes != len(magic) {
				t.Errorf("image %+v", result.Content[1])
			}
			checkHas(t, tools.ReadFile(), where, args{"file_path": "big"}, core.CodeIO, "Scale it down")
		})
	}
}

// A file of one very long line is not read into memory as a whole.
func TestReadFileEndlessLine(t *testing.T) {
	where := env.NewMemory("", map[string]string{"f": strings.Repeat("x", 10<<20) + "\nlast\n"})
	_, got := run(t, tools.ReadFile(), where, args{"file_path": "f"})
	if len(got) > 2<<20+200 {
		t.Errorf("%d bytes", len(got))
	}
	if !strings.HasSuffix(got, "\n(line 1 is truncated: the result is full)\n(lines 1–1 of 2; use offset 2 to continue)") {
		t.Errorf("end: %q", got[len(got)-150:])
	}
	check(t, tools.ReadFile(), where, args{"file_path": "f", "offset": 2}, "", "2 | last")
}

func TestReadFilePermission(t *testing.T) {
	where := env.NewMemory("", map[string]string{"f": "secret"})
	call := &core.Call{Args: []byte(`{"file_path":"f"}`), Env: core.Restrict(where, nil, nil)}
	result, err := tools.ReadFile().Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if got := model.Parts(result.Content).Text(); result.Code != core.CodePermission || strings.Contains(got, "secret") {
		t.Errorf("%s: %s", result.Code, got)
	}
}

func TestReadFileCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	where := env.NewMemory("", map[string]string{"f": "x"})
	result, _ := runContext(ctx, t, tools.ReadFile(), where, args{"file_path": "f"}, nil)
	if result.Code != core.CodeCancelled {
		t.Errorf("code %q", result.Code)
	}
}

// A handle of a stored output needs no grant.
func TestHandles(t *testing.T) {
	where := env.NewMemory("", nil)
	stored := env.NewMemory("", map[string]string{"context:7": "full\noutput\n"})
	call := func(tool core.Tool, raw string) (core.Result, string) {
		result, err := tool.Run(t.Context(), &core.Call{Args: []byte(raw), Env: core.Restrict(where, nil, memoryStore{stored})})
		if err != nil {
			t.Fatal(err)
		}
		return result, model.Parts(result.Content).Text()
	}
	if result, got := call(tools.ReadFile(), `{"file_path":"context:7"}`); result.Code != "" || got != "1 | full\n2 | output" {
		t.Errorf("%s: %s", result.Code, got)
	}
	if result, got := call(tools.ReadFile(), `{"file_path":"context:8"}`); result.Code != core.CodeNotFound || !strings.Contains(got, "Run the tool again") {
		t.Errorf("%s: %s", result.Code, got)
	}
	if result, got := call(tools.Grep(), `{"path":"context:7","pattern":"out"}`); result.Code != "" || got != "context:7:2:output" {
		t.Errorf("grep: %s: %s", result.Code, got)
	}
}

// memoryStore is a context store backed by the files of an environment.
type memoryStore struct{ files *env.Memory }

func (s memoryStore) Create(context.Context, core.OutputMeta) (core.StoredOutput, error) {
	return nil, errors.ErrUnsupported
}

func (s memoryStore) PutBlob(context.Context, []byte) (string, error) {
	return "", errors.ErrUnsupported
}

func (s memoryStore) Open(ctx context.Context, id string) (core.File, error) {
	return s.files.Files().Open(ctx, id)
}

func BenchmarkReadFile(b *testing.B) {
	where := env.NewMemory("", map[string]string{"f": numberedLines(200)})
	tool := tools.ReadFile()
	call := &core.Call{Args: []byte(`{"file_path":"f"}`), Env: where}
	b.ReportAllocs()
	for b.Loop() {
		if result, err := tool.Run(b.Context(), call); err != nil || result.Code != "" {
			b.Fatal(result, err)
		}
	}
}
