package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// maxEnvFile is how much a hook may write to its CLAUDE_ENV_FILE, in bytes.
const maxEnvFile = 64 << 10

// envFile is a file, for one run of a hook, to which the hook may append lines of the
// form: export NAME=value.
type envFile struct {
	dir  *sandbox.TempDir
	file *os.File
}

// newEnvFile returns the file of a hook that gets one, else nil: hooks of SessionStart,
// where commands see the files of this machine.
func (p Place) newEnvFile(ctx context.Context, d *Definition) (*envFile, error) {
	if p.variable == nil || d.Event != SessionStart || d.gemini {
		return nil, nil
	}
	dir, err := sandbox.NewTempDir()
	if err != nil {
		return nil, err
	}
	f := &envFile{dir: dir}
	if f.file, err = os.OpenFile(filepath.Join(dir.Path, "env"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600); err != nil {
		f.close()
		return nil, err
	}
	if _, err := p.Env.Files().Stat(ctx, f.file.Name()); err != nil { // another machine
		f.close()
		return nil, nil
	}
	return f, nil
}

// grants let the command write the file.
func (f *envFile) grants() []core.Grant {
	if f == nil {
		return nil
	}
	var grants []core.Grant
	for _, scope := range []core.Scope{core.ScopeRead, core.ScopeWrite} {
		grants = append(grants, core.Grant{Access: core.Access{Scope: scope, Resource: f.file.Name()}})
	}
	return grants
}

// read returns what the hook wrote. It reads the file that was created, whatever has
// its name by now.
func (f *envFile) read() (string, error) {
	if f == nil {
		return "", nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f.file, 0, maxEnvFile+1))
	if err == nil && len(data) > maxEnvFile {
		err = fmt.Errorf("it wrote more than %d KiB to CLAUDE_ENV_FILE", maxEnvFile>>10)
	}
	return string(data), err
}

func (f *envFile) close() {
	if f == nil {
		return
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	_ = f.dir.Remove() // or the next agent does
}

// export takes the variables in the text of a CLAUDE_ENV_FILE. A file that cannot be
// read as a whole sets none.
func (r *Result) export(p Place, text string) {
	list, err := parseExports(text)
	if err != nil {
		r.Err = fmt.Errorf("CLAUDE_ENV_FILE: %w", err)
		return
	}
	var refused []string
	for _, v := range list {
		err := p.variable(v.name, v.value)
		if v.expands {
			err = errors.New("its value has $ or `, which is not expanded: write the value itself")
		}
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s is not set: %v", v.name, err))
			continue
		}
		r.variables = append(r.variables, v.name+"="+v.value)
		if !slices.Contains(r.Variables, v.name) {
			r.Variables = append(r.Variables, v.name)
		}
	}
	if len(refused) > 0 {
		r.Message = strings.TrimPrefix(r.Message+"; ", "; ") + clip(fmt.Sprintf("CLAUDE_ENV_FILE of the hook %q: %s", clip(r.Definition.Title(), 100), strings.Join(refused, "; ")), 2000)
	}
}

// exported is a variable in a CLAUDE_ENV_FILE.
type exported struct {
	name, value string
	expands     bool // a shell would expand the value
}

// parseExports reads lines such as: export NAME=value OTHER='a b', and those that
// export -p prints: declare -x NAME="value".
func parseExports(text string) (list []exported, err error) {
	s := &exportReader{text: text}
	for {
		s.skip(" \t\r\n;")
		if s.at == len(s.text) {
			return list, nil
		}
		line := 1 + strings.Count(s.text[:s.at], "\n")
		if s.text[s.at] == '#' {
			s.word("\n")
			continue
		}
		some, ok := s.statement()
		if !ok {
			return nil, fmt.Errorf("line %d is not: export NAME=value", line)
		}
		list = append(list, some...)
	}
}

type exportReader struct {
	text string
	at   int
}

func (s *exportReader) skip(chars string) {
	s.at = len(s.text) - len(strings.TrimLeft(s.text[s.at:], chars))
}

// word returns what comes before one of the characters.
func (s *exportReader) word(until string) string {
	rest := s.text[s.at:]
	if end := strings.IndexAny(rest, until); end >= 0 {
		rest = rest[:end]
	}
	s.at += len(rest)
	return rest
}

// statement reads an export.
func (s *exportReader) statement() (list []exported, ok bool) {
	switch s.word(" \t\n;") {
	case "export":
	case "declare", "typeset":
		s.skip(" \t")
		if flags := s.word(" \t\n;"); !strings.HasPrefix(flags, "-") || !strings.Contains(flags, "x") || strings.Trim(flags, "-gx") != "" {
			return nil, false
		}
	default:
		return nil, false
	}
	for {
		s.skip(" \t\r")
		if s.at == len(s.text) || s.text[s.at] == '\n' || s.text[s.at] == ';' {
			return list, true
		}
		v := exported{name: s.word("= \t\r\n;")}
		if !identifier.MatchString(v.name) {
			return nil, false
		}
		if s.at == len(s.text) || s.text[s.at] != '=' {
			continue // it has no value
		}
		s.at++
		if v.value, v.expands, ok = s.value(); !ok {
			return nil, false
		}
		list = append(list, v)
	}
}

// value reads a word of the shell.
func (s *exportReader) value() (value string, expands, ok bool) {
	var b strings.Builder
	quoted := false // in double quotes
	for ; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == 0:
			return "", false, false
		case c == '"':
			quoted = !quoted
		case c == '$' || c == '`':
			expands = true
			b.WriteByte(c)
		case c == '\\':
			if s.at++; s.at == len(s.text) {
				return "", false, false
			}
			next := s.text[s.at]
			if quoted && !strings.ContainsRune("$`\"\\\n", rune(next)) {
				b.WriteByte('\\')
			}
			if next != '\n' {
				b.WriteByte(next)
			}
		case quoted:
			b.WriteByte(c)
		case c == '\'':
			s.at++
			b.WriteString(s.word("'"))
			if s.at == len(s.text) {
				return "", false, false
			}
		case strings.IndexByte(" \t\r\n;", c) >= 0:
			return b.String(), expands, true
		case strings.IndexByte("|&<>()", c) >= 0:
			return "", false, false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), expands, !quoted
}
