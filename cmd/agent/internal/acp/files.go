package acp

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core"
)

// wrap returns the environment of the tools: text files are those of the client, such
// as unsaved buffers, if it offers them.
func (s *session) wrap(env core.Environment) core.Environment {
	offered := s.server.capabilities().FS
	if offered == nil || !offered.ReadTextFile && !offered.WriteTextFile {
		return env
	}
	return &clientEnv{Environment: env, session: s, reads: offered.ReadTextFile, writes: offered.WriteTextFile}
}

// clientEnv is an environment with the text files of the client.
type clientEnv struct {
	core.Environment
	session       *session
	reads, writes bool
}

// Files implements [core.Environment].
func (e *clientEnv) Files() core.FS { return &clientFiles{e.Environment.Files(), e} }

// ExactFiles implements [core.ExactFiler].
func (e *clientEnv) ExactFiles() core.FS {
	if exact, ok := e.Environment.(core.ExactFiler); ok {
		return &clientFiles{exact.ExactFiles(), e}
	}
	return e.Files()
}

// clientFiles are the files of an environment, with the text of the client.
type clientFiles struct {
	core.FS
	env *clientEnv
}

// Open implements [core.FS]. Where the client has no text, the file is that of the
// environment.
func (f *clientFiles) Open(ctx context.Context, path string) (core.File, error) {
	file, err := f.FS.Open(ctx, path)
	if err != nil || !f.env.reads {
		return file, err
	}
	text, ok := f.buffer(ctx, file, path)
	if !ok {
		return file, nil
	}
	info, err := file.Stat()
	if err != nil {
		return file, nil //nolint:nilerr // its reader will get the error
	}
	_ = file.Close()
	return &bufferFile{bytes.NewReader([]byte(text)), bufferInfo{info, int64(len(text))}}, nil
}

// maxBuffer is the size of the largest file that the client is asked for.
const maxBuffer = 16 << 20

// buffer returns the client's text of a file, if it differs from the file.
func (f *clientFiles) buffer(ctx context.Context, file core.File, path string) (string, bool) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxBuffer {
		return "", false
	}
	data, err := io.ReadAll(io.NewSectionReader(file, 0, maxBuffer))
	if err != nil || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", false
	}
	var out protocol.ReadTextFileResponse
	r := protocol.ReadTextFileRequest{SessionID: f.env.session.ID(), Path: path}
	if err := f.env.session.server.conn.Call(ctx, protocol.MethodFSReadTextFile, r, &out); err != nil || out.Content == string(data) {
		return "", false
	}
	return out.Content, true
}

// Write implements [core.FS]. Text goes to the client, which writes it to the disk;
// where it cannot, the environment does.
func (f *clientFiles) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	if !f.env.writes {
		return f.FS.Write(ctx, path, content, mode)
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	if mode == 0 && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		r := protocol.WriteTextFileRequest{SessionID: f.env.session.ID(), Path: path, Content: string(data)}
		if err := f.env.session.server.conn.Call(ctx, protocol.MethodFSWriteTextFile, r, &protocol.WriteTextFileResponse{}); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return f.FS.Write(ctx, path, bytes.NewReader(data), mode)
}

// bufferFile is a file with the client's text.
type bufferFile struct {
	*bytes.Reader
	info fs.FileInfo
}

// Close implements [core.File].
func (*bufferFile) Close() error { return nil }

// Stat implements [core.File].
func (f *bufferFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// bufferInfo is the information about a file with another size.
type bufferInfo struct {
	os.FileInfo
	size int64
}

// Size implements [fs.FileInfo].
func (i bufferInfo) Size() int64 { return i.size }
