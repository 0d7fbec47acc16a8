package permissions

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// The limits of what is read to learn which files an archive or a patch replaces.
const (
	maxArchive  = 32 << 20  // bytes of the file
	maxUnpacked = 128 << 20 // bytes that it unpacks to
)

// namedIn returns the names of the files to which an access limits its loss; false
// if they cannot be found out, or if it does not limit it.
func (j *scriptJudge) namedIn(a *shell.Access) ([]string, bool) {
	if !a.Unpacked {
		if a.From == "" {
			return nil, false
		}
		return j.namesBelow(a.From, "", nil), true
	}
	sources := []string{a.From}
	if a.From == "" {
		sources = nil
		for i := range j.script.Redirects {
			if r := &j.script.Redirects[i]; r.Kind == shell.Read && !r.Glob {
				sources = append(sources, r.Path)
			}
		}
	}
	var names []string
	for _, source := range sources {
		data, err := core.ReadFile(j.ctx, j.environment.Files(), source, maxArchive)
		if err != nil {
			return nil, false
		}
		members, ok := membersOf(data)
		if !ok {
			return nil, false
		}
		names = append(names, members...)
	}
	if len(sources) == 0 {
		names = patched(j.whole.Resource) // a here-document
	}
	return names, len(names) > 0
}

// namesBelow returns the files below a directory, relative to it, up to a number.
func (j *scriptJudge) namesBelow(dir, rel string, names []string) []string {
	entries, err := j.environment.Files().ReadDir(j.ctx, strings.TrimSuffix(dir, "/")+"/"+rel)
	if err != nil {
		return names
	}
	for _, e := range entries {
		switch name := path.Join(rel, e.Name()); {
		case len(names) > maxLost:
			return names
		case e.IsDir():
			names = j.namesBelow(dir, name, names)
		default:
			names = append(names, name)
		}
	}
	return names
}

// countNames adds the files with these names below a directory.
func (j *scriptJudge) countNames(a *shell.Access, dir string, names []string) {
	one := shell.Access{Loss: shell.LosesAll}
	seen := map[string]bool{}
	for _, name := range names {
		for rest, more := name, true; more; {
			at := path.Join(dir, rest)
			if !seen[at] {
				seen[at] = true
				j.countBelow(&one, at, false)
			}
			_, rest, more = strings.Cut(rest, "/")
			more = more && a.Strip
		}
	}
}

// membersOf returns the names of the files in a tar or zip archive, compressed or
// not, or in a patch; false if it is none of them.
func membersOf(data []byte) ([]string, bool) {
	if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil {
		var names []string
		for _, f := range z.File {
			names = append(names, path.Clean(f.Name))
		}
		return names, true
	}
	var r io.Reader = bytes.NewReader(data)
	switch {
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, false
		}
		r = z
	case bytes.HasPrefix(data, []byte("BZh")):
		r = bzip2.NewReader(r)
	case len(data) < 512 || !bytes.Equal(data[257:262], []byte("ustar")):
		names := patched(string(data))
		return names, len(names) > 0
	}
	return tarNames(tar.NewReader(io.LimitReader(r, maxUnpacked)))
}

func tarNames(r *tar.Reader) (names []string, ok bool) {
	for {
		h, err := r.Next()
		switch {
		case err == io.EOF:
			return names, true
		case err != nil || len(names) > 10*maxLost:
			return nil, false
		case h.FileInfo().Mode().Type() != fs.ModeDir:
			names = append(names, path.Clean(strings.TrimLeft(h.Name, "/")))
		}
	}
}

// patched returns the files that a patch names.
func patched(text string) (names []string) {
	for line := range strings.Lines(text) {
		for _, head := range []string{"--- ", "+++ ", "*** ", "rename to ", "copy to "} {
			if name, ok := strings.CutPrefix(line, head); ok {
				name, _, _ = strings.Cut(strings.TrimRight(name, "\r\n"), "\t")
				names = append(names, path.Clean(strings.Trim(name, `"`)))
			}
		}
	}
	return names
}
