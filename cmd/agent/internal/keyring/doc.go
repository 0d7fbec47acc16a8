// Package keyring keeps keys in the keyring of the operating system: the
// Secret Service on Linux and the BSDs, the Keychain on macOS, the Credential
// Manager on Windows. It is a small wrapper of github.com/zalando/go-keyring
// that never starts a keyring where none runs.
package keyring
