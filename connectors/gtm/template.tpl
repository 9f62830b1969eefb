___TERMS_OF_SERVICE___

By creating or modifying this file you agree to Google Tag Manager's Community
Template Gallery Developer Terms of Service available at
https://developers.google.com/tag-manager/gallery-tos (or such other URL as
Google may provide), as modified from time to time.


___INFO___

{
  "type": "TAG",
  "id": "cvt_temp_public_id",
  "version": 1,
  "securityGroups": [],
  "displayName": "Queue Manager",
  "categories": [
    "UTILITY"
  ],
  "brand": {
    "id": "brand_dummy",
    "displayName": "Queue Manager",
    "thumbnail": ""
  },
  "description": "Puts a virtual waiting room in front of the page: loads the snippet of your own queue server, and checks in Preview that the room exists and accepts this site.",
  "containerContexts": [
    "WEB"
  ]
}


___TEMPLATE_PARAMETERS___

[
  {
    "type": "TEXT",
    "name": "server",
    "displayName": "Server URL",
    "simpleValueType": true,
    "valueHint": "https://queue.example.com",
    "help": "The origin of your queue server: https, without a path.",
    "alwaysInSummary": true,
    "valueValidators": [
      {
        "type": "NON_EMPTY"
      },
      {
        "type": "REGEX",
        "args": [
          "^(https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?|\\{\\{.+\\}\\})$"
        ],
        "errorMessage": "An origin such as https://queue.example.com, without a path, or a variable."
      }
    ]
  },
  {
    "type": "TEXT",
    "name": "room",
    "displayName": "Room ID",
    "simpleValueType": true,
    "valueHint": "checkout",
    "help": "Exactly as the console shows it; upper and lower case differ.",
    "alwaysInSummary": true,
    "valueValidators": [
      {
        "type": "NON_EMPTY"
      },
      {
        "type": "REGEX",
        "args": [
          "^([A-Za-z0-9_-]{1,64}|\\{\\{.+\\}\\})$"
        ],
        "errorMessage": "1 to 64 letters, digits, underscores or hyphens, or a variable."
      }
    ]
  },
  {
    "type": "GROUP",
    "name": "more",
    "displayName": "More settings",
    "groupStyle": "ZIPPY_CLOSED",
    "subParams": [
      {
        "type": "CHECKBOX",
        "name": "spa",
        "checkboxText": "Check again at every page change inside a single-page app",
        "simpleValueType": true
      },
      {
        "type": "TEXT",
        "name": "timeout",
        "displayName": "Milliseconds to wait for the queue",
        "simpleValueType": true,
        "valueHint": "2000",
        "valueValidators": [
          {
            "type": "REGEX",
            "args": [
              "^([0-9]{0,9}|\\{\\{.+\\}\\})$"
            ],
            "errorMessage": "A whole number, or empty for 2000."
          }
        ]
      }
    ]
  }
]


___SANDBOXED_JS_FOR_WEB_TEMPLATE___

/*
 * Queue Manager tag 1.0.0
 * Loads the snippet of the configured queue server. In Preview only, asks that server whether the
 * room exists and accepts this site. Tells Tag Manager exactly once whether the snippet loaded.
 */
const encodeUriComponent = require('encodeUriComponent');
const getContainerVersion = require('getContainerVersion');
const getUrl = require('getUrl');
const injectScript = require('injectScript');
const logToConsole = require('logToConsole');
const makeString = require('makeString');
const parseUrl = require('parseUrl');
const sendPixel = require('sendPixel');

const VERSION = '1.0.0';
const ROOM_LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-';
const DIGITS = '0123456789';

const container = getContainerVersion();
const isPreview = container.debugMode || container.previewMode;

const say = (text) => {
  if (isPreview) logToConsole('Queue Manager: ' + text);
};

/** A field's text; a variable may have given anything. */
const textOf = (value) => (value === undefined || value === null ? '' : makeString(value).trim());

const consistsOf = (text, letters, lengthMax) => {
  if (text.length < 1 || text.length > lengthMax) return false;
  for (let i = 0; i < text.length; i++) {
    if (letters.indexOf(text.charAt(i)) < 0) return false;
  }
  return true;
};

/** The origin of an https address without a path; empty for anything else. */
const originOf = (text) => {
  const url = parseUrl(text);
  if (!url || url.protocol !== 'https:' || !url.hostname || url.username || url.password) return '';
  const isBare = (url.pathname === '/' || url.pathname === '') && !url.search && !url.hash;
  return isBare && text.indexOf('?') < 0 && text.indexOf('#') < 0 ? url.origin : '';
};

const server = originOf(textOf(data.server));
const room = textOf(data.room);
const timeout = textOf(data.timeout);

/** Asks whether this installation works; an image is all a tag can read an answer from. */
const checkInstallation = () => {
  const port = getUrl('port');
  const site = getUrl('protocol') + '://' + getUrl('host');
  const origin = port && port !== '443' && port !== '80' ? site + ':' + port : site;
  const url = server + '/api/v1/verify.gif?roomId=' + encodeUriComponent(room) +
      '&origin=' + encodeUriComponent(origin) + '&connector=gtm&version=' + VERSION;
  const name = 'room "' + room + '"';
  sendPixel(url, () => {
    say(name + ' checked out: it exists on ' + server + ' and accepts ' + origin + '.');
  }, () => {
    say('REFUSED ' + name + ': ' + server + ' has no such room, or the room does not accept ' + origin +
        '. Correct the Room ID, or add the site to the tag origins of the room. A blocker that stops ' +
        'images looks the same. For the reason open ' + url);
  });
};

const loadSnippet = () => {
  let url = server + '/snippet/qm.js?server=' + encodeUriComponent(server) +
      '&room=' + encodeUriComponent(room);
  if (consistsOf(timeout, DIGITS, 9)) url += '&timeout=' + timeout;
  if (data.spa === true || data.spa === 'true') url += '&spa=auto';
  // The URL as token: however often the tag fires on a page, the snippet is loaded once.
  injectScript(url, data.gtmOnSuccess, () => {
    say('the snippet did not load from ' + server + ', so the page is open.');
    data.gtmOnFailure();
  }, url);
};

if (!server) {
  say('the Server URL is not an https origin without a path, so the page is open: ' + textOf(data.server));
  data.gtmOnFailure();
} else if (!consistsOf(room, ROOM_LETTERS, 64)) {
  say('the Room ID has 1 to 64 letters, digits, underscores or hyphens, so the page is open: ' + room);
  data.gtmOnFailure();
} else {
  if (isPreview) checkInstallation();
  loadSnippet();
}


___WEB_PERMISSIONS___

[
  {
    "instance": {
      "key": {
        "publicId": "inject_script",
        "versionId": "1"
      },
      "param": [
        {
          "key": "urls",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 1,
                "string": "https://*/snippet/qm.js*"
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "send_pixel",
        "versionId": "1"
      },
      "param": [
        {
          "key": "allowedUrls",
          "value": {
            "type": 1,
            "string": "specific"
          }
        },
        {
          "key": "urls",
          "value": {
            "type": 2,
            "listItem": [
              {
                "type": 1,
                "string": "https://*/api/v1/verify.gif*"
              }
            ]
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "get_url",
        "versionId": "1"
      },
      "param": [
        {
          "key": "urlParts",
          "value": {
            "type": 1,
            "string": "specific"
          }
        },
        {
          "key": "queriesAllowed",
          "value": {
            "type": 1,
            "string": "any"
          }
        },
        {
          "key": "protocol",
          "value": {
            "type": 8,
            "boolean": true
          }
        },
        {
          "key": "host",
          "value": {
            "type": 8,
            "boolean": true
          }
        },
        {
          "key": "port",
          "value": {
            "type": 8,
            "boolean": true
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "read_container_data",
        "versionId": "1"
      },
      "param": []
    },
    "isRequired": true
  },
  {
    "instance": {
      "key": {
        "publicId": "logging",
        "versionId": "1"
      },
      "param": [
        {
          "key": "environments",
          "value": {
            "type": 1,
            "string": "debug"
          }
        }
      ]
    },
    "clientAnnotations": {
      "isEditedByUser": true
    },
    "isRequired": true
  }
]


___TESTS___

scenarios:
- name: The snippet is loaded with its settings
  code: |-
    runCode(mockData);
    assertThat(injected).isEqualTo(snippet);
    assertApi('gtmOnSuccess').wasCalled();
    assertApi('gtmOnFailure').wasNotCalled();
    assertApi('sendPixel').wasNotCalled();
    assertApi('logToConsole').wasNotCalled();
- name: A snippet that does not load is a failure
  code: |-
    mock('injectScript', (url, onSuccess, onFailure) => { onFailure(); });
    runCode(mockData);
    assertApi('gtmOnFailure').wasCalled();
    assertApi('gtmOnSuccess').wasNotCalled();
- name: A server with a path is refused
  code: |-
    mockData.server = 'https://queue.example.com/x';
    runCode(mockData);
    assertApi('injectScript').wasNotCalled();
    assertApi('gtmOnFailure').wasCalled();
- name: A room with a blank in it is refused
  code: |-
    mockData.room = 'check out';
    runCode(mockData);
    assertApi('injectScript').wasNotCalled();
    assertApi('gtmOnFailure').wasCalled();
- name: Preview checks the installation
  code: |-
    mock('getContainerVersion', () => { return {debugMode: true, previewMode: true}; });
    runCode(mockData);
    assertApi('sendPixel').wasCalled();
    assertApi('logToConsole').wasCalled();
    assertApi('gtmOnSuccess').wasCalled();
setup: |-
  const mockData = {server: 'https://queue.example.com/', room: 'checkout'};
  const snippet = 'https://queue.example.com/snippet/qm.js?server=https%3A%2F%2Fqueue.example.com&room=checkout';
  let injected;
  mock('injectScript', (url, onSuccess) => { injected = url; onSuccess(); });
  mock('sendPixel', (url, onSuccess) => { onSuccess(); });
  mock('getContainerVersion', () => { return {debugMode: false, previewMode: false}; });


___NOTES___

Queue Manager tag 1.0.0. Served by every queue server at /connectors/gtm/template.tpl.
