package service

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// The entries of an archive. Those of a subagent are below agents/ID/.
const (
	archiveHead   = "session.json" // the first
	archiveLog    = "log.jsonl"
	archiveOutput = "output/" // and a handle without its prefix
	archiveBlob   = "blob/"   // and a SHA-256
	archiveAgents = "agents/"
	archiveFiles  = "work/" // and a path in the workspace
	archiveEnd    = "end"   // the last: nothing is missing
)

// Moved is what is said of a session that moves to a service, besides its log.
type Moved struct {
	Title     string            `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Spec      json.RawMessage   `json:"spec,omitempty"`
	Workspace workspace.Spec    `json:"workspace,omitzero"`
	// Files says that the archive has the files of the workspace, which is a new directory.
	Files bool `json:"files,omitempty"`
	// Digest is the SHA-256 of all logs in the archive, in hex: a session that was moved
	// before is known by it.
	Digest string `json:"digest"`
}

// Archive writes a session that moves to a service: what Import reads. Its methods are
// called in this order: for the session and then for each subagent Log, with the outputs
// behind it; File; Close.
type Archive struct {
	tar   *tar.Writer
	below string
}

// NewArchive begins an archive.
func NewArchive(w io.Writer, m Moved) (*Archive, error) {
	a := &Archive{tar: tar.NewWriter(w)}
	data, err := json.Marshal(m)
	if err == nil {
		err = a.add(archiveHead, 0o600, int64(len(data)), bytes.NewReader(data))
	}
	return a, err
}

// Log adds a log, that of the session without a subagent first.
func (a *Archive) Log(subagent string, size int64, r io.Reader) error {
	if a.below = ""; subagent != "" {
		a.below = archiveAgents + subagent + "/"
	}
	return a.add(a.below+archiveLog, 0o600, size, r)
}

// Output adds an output, by its handle, or an image, by its SHA-256, of the last log.
func (a *Archive) Output(id string, size int64, r io.Reader) error {
	name := archiveBlob + id
	if handle, ok := strings.CutPrefix(id, core.HandlePrefix); ok {
		name = archiveOutput + handle
	}
	return a.add(a.below+name, 0o600, size, r)
}

// File adds a file or a link of the workspace, by its path below that, with slashes.
func (a *Archive) File(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		if err != nil {
			return err
		}
		return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: archiveFiles + name, Linkname: to, Format: tar.FormatPAX})
	case info.IsDir():
		return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: archiveFiles + name + "/", Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX})
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file any more", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.add(archiveFiles+name, info.Mode().Perm(), info.Size(), f)
}

func (a *Archive) add(name string, mode fs.FileMode, size int64, r io.Reader) error {
	err := a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: size, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.CopyN(a.tar, r, size)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the file became shorter meanwhile")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path.Base(name), err)
	}
	return nil
}

// Close says that the archive is complete.
func (a *Archive) Close() error {
	return errors.Join(a.add(archiveEnd, 0o600, 0, strings.NewReader("")), a.tar.Close())
}
