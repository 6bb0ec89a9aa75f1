module github.com/srcproof/srcproof

go 1.26

require (
	github.com/klauspost/compress v1.20.4 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)
