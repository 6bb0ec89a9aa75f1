module github.com/srcproof/srcproof

go 1.26

require (
	github.com/fatih/color v1.19.0 // indirect
	github.com/google/gopacket v1.1.19 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/sys v0.42.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
