// Package bundle installs folders of other people's files (skills, plugins) so
// that what runs later is what the person agreed to.
//
// A [Store] is a directory with one folder for each installed thing and a lock
// file, lock.json, which says of each where it came from, what each file's hash
// is, and what the person agreed to. Installing goes in steps:
//
//	stage, err := store.Stage(ctx)       // a private place beside the installed things
//	defer stage.Close()
//	err = stage.AddArchive(ctx, file)    // or AddFolder, or fill stage.Dir() by other means
//	tree, err := stage.Tree(ctx)         // every file with its hash: show it, ask the person
//	entry, err := stage.Install(ctx, bundle.Install{Name: "x", Tree: tree.Hash, …})
//
// Installing and removing are all or nothing: whatever happens, a kill included,
// there is the old state or the new one, and readers never see a half. Several
// processes may use one store.
//
// # What is refused
//
// Nothing that could reach out of its folder or means different things on
// different systems gets in: links, devices, absolute paths, "..", names that
// Windows reserves, names that differ only in case; and archives are limited in
// number, size and compression. See [Limits].
//
// # What the lock file proves
//
// Files that changed since they were installed are found by [Store.Verify]. An
// entry that was edited is found as well; but its checksum has no key, so a lock
// file proves something only where nobody else can write. A consent that comes
// with a project is none.
//
// Archives are read with the standard library alone (zip, tar, tar.gz, tar.bz2):
// what formats a library would add, nobody ships skills or plugins in.
package bundle
