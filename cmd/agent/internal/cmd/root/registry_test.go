package root

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdGitServer serves the repositories below a folder over HTTP, with git itself.
// GIT_SITE is its address.
func cmdGitServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gitserver DIR")
	}
	dir, err := exec.Command("git", "--exec-path").Output()
	ts.Check(err)
	handler := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(dir)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + ts.MkAbs(args[0]), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	server := httptest.NewServer(handler)
	ts.Defer(server.Close)
	ts.Setenv("GIT_SITE", server.URL)
}

// cmdNPM serves folders as packages of an npm registry, each as version 1.0.0 and
// latest. The package forged has a hash of something else.
func cmdNPM(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: npm NAME=DIR…")
	}
	packages := map[string][]byte{}
	for _, arg := range args {
		name, dir, _ := strings.Cut(arg, "=")
		packages[name] = npmPack(ts, ts.MkAbs(dir))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if tarball, ok := strings.CutSuffix(name, ".tgz"); ok && packages[tarball] != nil {
			w.Write(packages[tarball])
			return
		}
		name, version := path.Split(name)
		data, ok := packages[strings.TrimSuffix(name, "/")]
		if !ok || version != "latest" && version != "1.0.0" {
			http.NotFound(w, r)
			return
		}
		if name == "forged/" {
			data = []byte("something else")
		}
		sum := sha512.Sum512(data)
		json.NewEncoder(w).Encode(map[string]any{"version": "1.0.0", "dist": map[string]string{
			"tarball": "http://" + r.Host + "/" + name[:len(name)-1] + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}})
	}))
	ts.Defer(server.Close)
	ts.Setenv("NPM_CONFIG_REGISTRY", server.URL)
}

// npmPack returns a folder as npm packs it.
func npmPack(ts *testscript.TestScript, dir string) []byte {
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	w := tar.NewWriter(packed)
	ts.Check(fs.WalkDir(os.DirFS(dir), ".", func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, at))
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: "package/" + at, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}))
	ts.Check(w.Close())
	ts.Check(packed.Close())
	return b.Bytes()
}
