// Package bundle installs folders of third-party files (skills, plugins), so
// that what runs later is what the user approved.
//
// A [Store] is a directory with one folder for each installed bundle and a lock
// file, lock.json, with the source, the file hashes and the user's consent of
// each. Installing takes these steps:
//
//	stage, err := store.Stage(ctx)       // a private folder in the store
//	defer stage.Close()
//	err = stage.AddArchive(ctx, file)    // or AddFolder, or fill stage.Dir() by other means
//	tree, err := stage.Tree(ctx)         // every file with its hash: show it, ask the user
//	entry, err := stage.Install(ctx, bundle.Install{Name: "x", Tree: tree.Hash, …})
//
// Installing and removing are atomic: whatever happens, even a kill, the result
// is the old state or the new one, and readers see nothing in between. Several
// processes may use one store.
//
// # What is refused
//
// A bundle must not reach out of its folder or mean different things on different
// systems. Links, devices, absolute paths, "..", names that Windows reserves,
// and names that differ only in case are refused; archives are limited in number
// of files, size and compression. See [Limits].
//
// # What the lock file proves
//
// [Store.Verify] finds files that changed since they were installed. An edited
// entry is detected as well; but its checksum has no key, so a lock file proves
// something only if nobody else can write it. Consent that comes with a project
// does not count.
//
// Archives are read with the standard library only (zip, tar, tar.gz, tar.bz2):
// skills and plugins are not distributed in other formats.
package bundle
