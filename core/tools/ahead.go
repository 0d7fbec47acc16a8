package tools

import (
	"context"
	"errors"
	"io/fs"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/gitignore"
)

// treeAhead is what a walker has read before its walk, level by level, in an
// environment with batches. Elsewhere it is empty.
type treeAhead struct {
	batch core.Batch
	dirs  map[string]core.BatchResult
	rules map[string][]gitignore.Rule // by the path for the environment
}

// openBatch starts a batch, if the environment has them.
func (w *walker) openBatch(ctx context.Context) error {
	batcher, ok := w.env.Files().(core.Batcher)
	if !ok {
		return nil
	}
	if err := w.resolve(ctx); err != nil {
		return err
	}
	batch, err := batcher.Batch(ctx)
	if batch == nil || err != nil {
		return err
	}
	w.ahead = treeAhead{batch: batch, dirs: map[string]core.BatchResult{}, rules: map[string][]gitignore.Rule{}}
	return nil
}

// closeBatch ends the batch.
func (w *walker) closeBatch() {
	if w.ahead.batch != nil {
		_ = w.ahead.batch.Close() // nothing depends on it
	}
}

// treeDir is a directory of the tree that is read ahead.
type treeDir struct {
	rel     string // with a trailing slash; empty = the base
	entries []fs.DirEntry
	levels  []gitignore.Level
}

// readTree reads the directories that the walk will enter, and their rules.
func (w *walker) readTree(ctx context.Context, entries []fs.DirEntry, levels []gitignore.Level) error {
	if w.ahead.batch == nil {
		return nil
	}
	for level := []treeDir{{"", entries, levels}}; len(level) > 0; {
		var files []string
		for _, d := range level {
			for _, name := range ignoreFiles(d.entries) {
				files = append(files, w.at(d.rel+name))
			}
		}
		if err := w.readRules(files); err != nil {
			return err
		}
		var below []treeDir
		var paths []string
		for _, d := range level {
			levels := w.innerLevels(ctx, d.rel, d.entries, d.levels)
			for _, e := range d.entries {
				if rel := d.rel + e.Name(); !skips(levels, rel, e) && w.enters(rel, e) {
					below = append(below, treeDir{rel: rel + "/", levels: levels})
					paths = append(paths, w.at(rel))
				}
			}
		}
		results, err := w.ahead.batch.ReadDirs(paths)
		if err != nil {
			return err
		}
		for i, result := range results {
			w.ahead.dirs[below[i].rel] = result
			below[i].entries = result.Entries
		}
		level = below
	}
	return nil
}

// readRules reads files with rules. Files that a batch refuses, such as links, are
// left to the walk.
func (w *walker) readRules(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return w.ahead.batch.ReadFiles(paths, maxIgnoreFile+1, func(i int, data []byte, err error) {
		switch {
		case err == nil && len(data) <= maxIgnoreFile:
			w.ahead.rules[paths[i]] = gitignore.Parse(string(data))
		case err == nil, errors.Is(err, fs.ErrNotExist):
			w.ahead.rules[paths[i]] = nil
		}
	})
}

// readDir reads a directory of the walk; rel is empty for the base.
func (w *walker) readDir(ctx context.Context, rel string) ([]fs.DirEntry, error) {
	if result, ok := w.ahead.dirs[rel+"/"]; ok {
		delete(w.ahead.dirs, rel+"/")
		return result.Entries, result.Err
	}
	if rel == "" && w.ahead.batch != nil {
		results, err := w.ahead.batch.ReadDirs([]string{w.at("")})
		if err != nil {
			return nil, err
		}
		return results[0].Entries, results[0].Err
	}
	return w.env.Files().ReadDir(ctx, w.at(rel))
}

// Bounds of a request for files.
const (
	maxBatchFiles = 512
	maxBatchBytes = 16 << 20
)

// readBatches does the jobs of a search by a batch: few at first, as the search
// may end soon.
func (s *search) readBatches() {
	reader := newFileSearcher(s.query, maxGrepFile)
	for most := 64; ; most = min(2*most, maxBatchFiles) {
		var small, large []*searchJob
		for bytes := int64(0); len(small)+len(large) < most && bytes < maxBatchBytes; {
			job, ok := <-s.work
			if !ok {
				break
			}
			if bytes += min(job.size, maxGrepFile); job.size > maxGrepFile {
				large = append(large, job)
			} else {
				small = append(small, job)
			}
		}
		if len(small)+len(large) == 0 {
			return
		}
		s.readBatch(reader, small, maxGrepFile+1)
		s.readBatch(reader, large, sniffLen) // to know whether they are binary
	}
}

func (s *search) readBatch(reader *fileSearcher, jobs []*searchJob, limit int) {
	if len(jobs) == 0 {
		return
	}
	paths := make([]string, len(jobs))
	for i, job := range jobs {
		paths[i] = s.walker.at(job.files[0].rel)
	}
	pending := map[*searchJob]bool{}
	for _, job := range jobs {
		pending[job] = true
	}
	err := s.walker.ahead.batch.ReadFiles(paths, limit, func(i int, data []byte, err error) {
		var file grepFile
		if err == nil {
			file, err = reader.searchText(s.ctx, data, limit == sniffLen)
		}
		jobs[i].finish(file, err)
		delete(pending, jobs[i])
	})
	for job := range pending { // the connection failed
		job.finish(grepFile{}, errors.Join(errLostBatch, err))
	}
}

// errLostBatch ends a search.
var errLostBatch = errors.New("the search was cut short")
