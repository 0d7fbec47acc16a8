//go:build ignore

// Command gen writes languages.zip: the definitions of languages from chroma, and
// an index of their names.
package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// Languages by the name of chroma's file.
const languages = `bash bash_session batchfile c c# c++ clojure cmake common_lisp css dart diff docker elixir erlang fish fsharp
	go_template graphql groovy haskell hcl html ini java javascript json julia kotlin lua makefile nginx_configuration_file nix objective-c ocaml
	perl php powershell properties protocol_buffer python r react ruby rust sass scala scss sql swift systemd terraform tex toml typescript viml vue xml yaml zig`

// Languages that chroma defines in Go.
var inGo = map[string]string{"go": "Go", "markdown": "markdown"}

type entry struct {
	File  string   `json:"file"`
	Names []string `json:"names"` // in lower case
	Globs []string `json:"globs"`
	Uses  []string `json:"uses,omitempty"` // files
}

var using = regexp.MustCompile(`<using lexer="([^"]+)"`)

func main() {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	check(err)
	files := map[string][]byte{}
	for _, name := range strings.Fields(languages) {
		files[name], err = os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "lexers", "embedded", name+".xml"))
		check(err)
	}
	for name, lexer := range inGo {
		files[name] = marshal(lexers.Get(lexer))
	}
	var index []entry
	byName := map[string]string{}
	for name, data := range files {
		var l struct {
			Config chroma.Config `xml:"config"`
		}
		check(xml.Unmarshal(data, &l))
		e := entry{File: name, Globs: l.Config.Filenames}
		for _, n := range append(l.Config.Aliases, l.Config.Name) {
			e.Names = append(e.Names, strings.ToLower(n))
			byName[strings.ToLower(n)] = name
		}
		index = append(index, e)
	}
	slices.SortFunc(index, func(a, b entry) int { return cmp.Compare(a.File, b.File) })
	for i, e := range index {
		files[e.File] = using.ReplaceAllFunc(files[e.File], func(m []byte) []byte {
			name, ok := byName[strings.ToLower(string(using.FindSubmatch(m)[1]))]
			if !ok {
				return []byte(`<token type=\"Other\"`)
			}
			if !slices.Contains(index[i].Uses, name) {
				index[i].Uses = append(index[i].Uses, name)
			}
			return m
		})
	}
	list, err := json.Marshal(index)
	check(err)
	write(index, list, files)
}

// marshal returns the definition of a language that is defined in Go. What has no
// form in XML, a language within a string, becomes a string.
func marshal(l chroma.Lexer) []byte {
	if wrapped := reflect.Indirect(reflect.ValueOf(l)).FieldByName("Lexer"); wrapped.IsValid() {
		l = wrapped.Interface().(chroma.Lexer)
	}
	regex := l.(*chroma.RegexLexer)
	rules := chroma.Rules{}
	for state, list := range regex.MustRules() {
		for _, r := range list {
			if _, err := xml.Marshal(chroma.Rules{state: {r}}); err != nil {
				r.Type = chroma.LiteralString
			}
			rules[state] = append(rules[state], r)
		}
	}
	data, err := chroma.Marshal(chroma.MustNewLexer(regex.Config(), func() chroma.Rules { return rules }))
	check(err)
	return data
}

func write(index []entry, list []byte, files map[string][]byte) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	add := func(name string, data []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		check(err)
		_, err = w.Write(data)
		check(err)
	}
	add("index.json", list)
	for _, e := range index {
		add(e.File+".xml", files[e.File])
	}
	check(z.Close())
	check(os.WriteFile("languages.zip", out.Bytes(), 0o644))
	fmt.Println(len(index), "languages,", out.Len(), "bytes")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
