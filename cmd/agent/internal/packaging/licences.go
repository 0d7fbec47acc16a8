package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// program is what the packages hold.
const program = "github.com/seed-009c0928/agent/cmd/agent"

// systems are those that the release is for: each links other libraries.
var systems = []string{"linux", "darwin", "windows"}

// library is a module that the program links.
type library struct {
	Path, Version, Dir string
	Main               bool
}

// licences returns the licences and notices of all libraries, and of Go itself.
func licences(ctx context.Context) ([]byte, error) {
	all := map[string]library{}
	for _, system := range systems {
		list, err := libraries(ctx, system)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			all[l.Path] = l
		}
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(goroot)), "\n")
	all["Go"] = library{Path: "Go", Version: strings.TrimSpace(version), Dir: strings.TrimSpace(root)}

	var b bytes.Buffer
	b.WriteString("# Licences of third parties\n\nThe program contains these libraries.\n")
	var missing []error
	for _, path := range slices.Sorted(maps.Keys(all)) {
		l := all[path]
		fmt.Fprintf(&b, "\n## %s %s\n", l.Path, l.Version)
		if err := l.writeTexts(&b); err != nil {
			missing = append(missing, err)
		}
	}
	return b.Bytes(), errors.Join(missing...)
}

// libraries lists the modules that the program links on a system.
func libraries(ctx context.Context, system string) ([]library, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", program)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w", system, err)
	}
	var list []library
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *library }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		if p.Module != nil && !p.Module.Main {
			list = append(list, *p.Module)
		}
	}
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([-._].*)?$`)

// writeTexts writes a library's licence and notice files, which are in its top
// directory.
func (l library) writeTexts(w io.Writer) error {
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Path, err)
	}
	found := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(l.Dir, e.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", l.Path, err)
		}
		found = true
		fmt.Fprintf(w, "\n```text\n%s\n```\n", strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if !found {
		return fmt.Errorf("%s %s: no licence file in %s", l.Path, l.Version, l.Dir)
	}
	return nil
}
