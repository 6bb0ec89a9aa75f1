// Package report turns a result into one Record, and a Record into what people and programs read: text, JSON and JSON
// lines.
//
// In comes an analyze.Result, or a Record that was saved as JSON. Out go bytes to a writer. The Record is computed once;
// every writer prints the same Record, so two formats can never disagree. A writer groups, sorts and cuts to width, and
// concludes nothing of its own.
//
// The output law: everything that comes from a file (interface names, comments, Kubernetes names, file names, and every
// sentence that may quote one) is hostile and passes Escape on its way to a terminal, EscapeMarkdown on its way to
// Markdown; JSON escapes the same characters. Nothing is wider than TextOptions.Width, except a command that a person is
// to paste: that is never broken. Meaning is never only in colour.
//
// Deliberately absent: this room opens no file, reads no clock and no environment, and does not know the terminal.
// Whoever calls it says how wide, how colourful and in which time zone.
package report
