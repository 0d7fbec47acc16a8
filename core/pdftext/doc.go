// Package pdftext extracts the text of PDF documents, page by page.
//
// Documents are untrusted, and one can make any parser use too much time or memory.
// So a [Reader] starts a process that parses one document and ends: it sees no
// files, has no network, and is limited. [Serve] is that process.
package pdftext
