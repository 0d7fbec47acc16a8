package root

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/zip"
)

// sdkVersion is the version under which a script's module proxy has this source.
const sdkVersion = "v0.0.1"

// cmdModules makes a module proxy of folders. The modules that plugins need
// come from the cache that this test itself was built from.
func cmdModules(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: modules DIR")
	}
	proxy := ts.MkAbs(".proxy")
	dirs, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*", "*@*"))
	ts.Check(err)
	for _, dir := range dirs {
		rel, err := filepath.Rel(ts.MkAbs(args[0]), dir)
		ts.Check(err)
		name, version, _ := strings.Cut(filepath.ToSlash(rel), "@")
		ts.Check(publish(proxy, module.Version{Path: name, Version: version}, dir, "."))
	}
	self := module.Version{Path: "github.com/seed-009c0928/agent", Version: sdkVersion}
	ts.Check(publish(proxy, self, ts.Getenv("REPO"), "sdk", "sdk/toolproto"))

	if ts.Getenv("GOPROXY") != "" {
		return
	}
	cmdGoCache(ts, false, nil)
	known := filepath.Join(ts.Getenv("GOMODCACHE"), "cache", "download")
	ts.Setenv("GOPROXY", fileURL(proxy)+","+fileURL(known))
	ts.Setenv("GOMODCACHE", ts.MkAbs(filepath.Join(".tmp", "modules")))
	ts.Setenv("GOSUMDB", "off")
	ts.Setenv("GOTOOLCHAIN", "local")
}

func fileURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(dir), "/")}).String()
}

// publish puts the files of a module's packages, and its go.mod, into a proxy.
func publish(proxy string, m module.Version, root string, packages ...string) error {
	at := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	files := []zip.File{diskFile{filepath.Join(root, "go.mod"), "go.mod"}}
	for _, pkg := range packages {
		entries, err := os.ReadDir(filepath.Join(root, pkg))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if name := path.Join(pkg, e.Name()); e.Type().IsRegular() && name != "go.mod" {
				files = append(files, diskFile{filepath.Join(root, name), name})
			}
		}
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for ending, text := range map[string]string{".mod": string(mod), ".info": fmt.Sprintf(`{"Version": %q}`, m.Version)} {
		if err := os.WriteFile(filepath.Join(at, m.Version+ending), []byte(text), 0o644); err != nil {
			return err
		}
	}
	list, err := os.OpenFile(filepath.Join(at, "list"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer list.Close()
	if _, err := fmt.Fprintln(list, m.Version); err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(at, m.Version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close()
	return zip.Create(archive, m, files)
}

// diskFile is a file that goes into a module under another path.
type diskFile struct{ at, name string }

func (f diskFile) Path() string { return f.name }

func (f diskFile) Lstat() (os.FileInfo, error) { return os.Lstat(f.at) }

func (f diskFile) Open() (io.ReadCloser, error) { return os.Open(f.at) }

// cmdSumDB starts a checksum database that knows modules as the proxy has them
// now, and has the go command ask it.
func cmdSumDB(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: sumdb MODULE@VERSION…")
	}
	known := map[string][]byte{}
	for _, arg := range args {
		name, version, _ := strings.Cut(arg, "@")
		at := filepath.Join(ts.MkAbs(".proxy"), filepath.FromSlash(name), "@v", version)
		archive, err := dirhash.HashZip(at+".zip", dirhash.Hash1)
		ts.Check(err)
		mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(at + ".mod") })
		ts.Check(err)
		known[arg] = fmt.Appendf(nil, "%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", name, version, archive, mod)
	}
	signer, verifier, err := note.GenerateKey(rand.Reader, "sums.test")
	ts.Check(err)
	server := httptest.NewServer(sumdb.NewServer(sumdb.NewTestServer(signer, func(name, version string) ([]byte, error) {
		if lines, ok := known[name+"@"+version]; ok {
			return lines, nil
		}
		return nil, fmt.Errorf("%s@%s is not known", name, version)
	})))
	ts.Defer(server.Close)
	ts.Setenv("GOSUMDB", verifier+" "+server.URL)
}

// cmdFound looks for files by a pattern.
func cmdFound(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] found PATTERN")
	}
	names, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if (len(names) > 0) == neg {
		ts.Fatalf("%s is %q", args[0], names)
	}
}
