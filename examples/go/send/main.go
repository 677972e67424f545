// Sends an email; after a lost response it retries without sending twice. Standard library only: go run ./examples/go/send/main.go
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type email struct {
	From    string   `json:"from"`
	To      []string `json:"to"`
	Subject string   `json:"subject"`
	HTML    string   `json:"html,omitempty"`
}

type answer struct {
	Data struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"data"`
	Error struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		Suggestion string `json:"suggestion"`
	} `json:"error"`
}

func send(message email) (answer, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return answer{}, err
	}
	key := make([]byte, 16)
	if _, err := rand.Read(key); err != nil {
		return answer{}, err
	}
	client := http.Client{Timeout: time.Minute}
	for left := 2; ; left-- {
		request, err := http.NewRequest("POST", os.Getenv("POSTRIDER_URL")+"/v1/emails", bytes.NewReader(body))
		if err != nil {
			return answer{}, err
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("POSTRIDER_KEY"))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", fmt.Sprintf("%x", key))
		response, err := client.Do(request)
		wait := time.Second
		if err == nil {
			text, readErr := io.ReadAll(response.Body)
			response.Body.Close()
			var got answer
			if readErr == nil && json.Unmarshal(text, &got) == nil {
				if response.StatusCode == 200 {
					return got, nil
				}
				err = fmt.Errorf("%s: %s (%s)", got.Error.Code, got.Error.Message, got.Error.Suggestion)
			} else {
				err = fmt.Errorf("status %d: %s", response.StatusCode, text)
			}
			if response.StatusCode != 429 && response.StatusCode < 500 {
				return answer{}, err
			}
			if seconds, parseErr := strconv.Atoi(response.Header.Get("Retry-After")); parseErr == nil && seconds <= 60 {
				wait = time.Duration(seconds) * time.Second
			}
		}
		if left == 0 {
			return answer{}, err
		}
		time.Sleep(wait)
	}
}

func main() {
	sent, err := send(email{
		From:    "Shop <shop@simulator.test>",
		To:      []string{"delivered@simulator.test"},
		Subject: "Your order",
		HTML:    "<p>Thank you.</p>",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sent.Data.ID, sent.Data.Status)
}
