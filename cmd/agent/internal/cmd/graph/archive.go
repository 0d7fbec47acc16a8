package graph

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"

	"github.com/seed-009c0928/agent/plugins/graph"
)

// extract writes the source files of an archive of git into an empty directory.
func extract(ctx context.Context, archive []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !graph.IsSource(h.Name) {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(h.Name), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(h.Name, data, 0o600); err != nil {
			return err
		}
	}
}
