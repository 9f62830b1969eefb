// Tag Manager's sandbox as far as this template meets it: no globals of the language or the page, only
// `require` and `data`; every call is checked against the permissions written in the template's file.

import fs from 'node:fs';
import vm from 'node:vm';

export const FILE = new URL('../template.tpl', import.meta.url);

/** The sections of a template file. */
export function readTemplate(text = fs.readFileSync(FILE, 'utf8')) {
  const parts = text.split(/^___([A-Z_]+)___\n/m).slice(1);
  const sections = {};
  for (let i = 0; i < parts.length; i += 2) sections[parts[i]] = parts[i + 1].trim();
  return {
    order: Object.keys(sections),
    info: JSON.parse(sections.INFO),
    parameters: JSON.parse(sections.TEMPLATE_PARAMETERS),
    code: sections.SANDBOXED_JS_FOR_WEB_TEMPLATE,
    permissions: JSON.parse(sections.WEB_PERMISSIONS),
    tests: sections.TESTS,
  };
}

/** What the sandbox's own compiler refuses, found in code without comments and quoted text. */
export function forbidden(code) {
  const bare = code.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'/g, ' ');
  return bare.match(/\b(new|this|class|async|await|yield|import|export|eval|Function|Promise|window|document|arguments|delete|with|debugger)\b|`|\.\.\.|\?\.|\?\?|[=(,]\s*\/(?![/*])/g) ?? [];
}

const value = ({ type, string, boolean, listItem }) => (type === 8 ? boolean : type === 2 ? listItem.map(value) : string);

/** The permissions by name, their parameters as plain values. */
export function readPermissions(list) {
  const entries = list.map(({ instance }) => [instance.key.publicId, Object.fromEntries(instance.param.map((one) => [one.key, value(one.value)]))]);
  return Object.fromEntries(entries);
}

/** Whether a URL fits a pattern of scheme, host and path with `*` in either. */
export function fits(pattern, text) {
  const url = new URL(text);
  const [, host, path] = /^https:\/\/([^/]+)(\/.*)$/.exec(pattern);
  const glob = (one) => new RegExp(`^${one.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
  return url.protocol === 'https:' && glob(host).test(url.host) && glob(path).test(url.pathname + url.search);
}

/** One run of the code. `page` is the page's URL, `load` plays the network for scripts and images. */
export class Run {
  constructor({ template = readTemplate(), data = {}, preview = false, page = 'https://shop.example.com/checkout', load = () => true, mocks = {} } = {}) {
    Object.assign(this, { template, page: new URL(page), preview, load, mocks });
    this.permissions = readPermissions(template.permissions);
    this.calls = [];
    this.loaded = new Map();
    this.pending = [];
    this.data = { ...data, gtmOnSuccess: this.api('gtmOnSuccess', () => {}), gtmOnFailure: this.api('gtmOnFailure', () => {}) };
  }

  /** Fires the tag; a second time on the same page is another call. */
  async fire() {
    const context = vm.createContext(Object.create(null));
    vm.runInContext('(function (all) { Object.getOwnPropertyNames(all).forEach(function (name) { delete all[name]; }); })(this)', context);
    context.require = (name) => this.require(name);
    context.data = this.data;
    vm.runInContext(`'use strict'; (function () {\n${this.template.code}\n})();`, context, { timeout: 1000 });
    while (this.pending.length) await Promise.all(this.pending.splice(0));
    return this;
  }

  count(name) {
    return this.calls.filter((call) => call[0] === name).length;
  }
  said() {
    return this.calls.filter((call) => call[0] === 'logToConsole').map((call) => call[1]);
  }
  argument(name) {
    return this.calls.find((call) => call[0] === name)?.[1];
  }

  api(name, act) {
    return (...args) => {
      this.calls.push([name, ...args]);
      return (this.mocks[name] ?? act)(...args);
    };
  }

  allow(condition, what) {
    if (!condition) throw new Error(`permission denied: ${what}`);
  }

  network(kind, url, onSuccess, onFailure) {
    this.pending.push(Promise.resolve(this.load(kind, url)).then((ok) => (ok ? onSuccess : onFailure)?.()));
  }

  require(name) {
    const { permissions, page } = this;
    const apis = {
      encodeUriComponent: (text) => encodeURIComponent(text),
      makeString: (any) => String(any),
      parseUrl: (text) => {
        if (!URL.canParse(text)) return undefined;
        const { href, origin, protocol, username, password, host, hostname, port, pathname, search, hash } = new URL(text);
        return { href, origin, protocol, username, password, host, hostname, port, pathname, search, hash };
      },
      getContainerVersion: () => {
        this.allow(permissions.read_container_data, 'read_container_data');
        return { containerId: 'GTM-TEST', debugMode: this.preview, previewMode: this.preview, environmentMode: false, version: '1' };
      },
      getUrl: (component) => {
        this.allow(permissions.get_url?.urlParts === 'any' || permissions.get_url?.[component] === true, `get_url ${component}`);
        return { protocol: page.protocol.slice(0, -1), host: page.hostname, port: page.port || (page.protocol === 'https:' ? '443' : '80') }[component];
      },
      logToConsole: () => {
        const { environments } = permissions.logging ?? {};
        this.allow(environments === 'all' || (environments === 'debug' && this.preview), 'logging');
      },
      sendPixel: (url, onSuccess, onFailure) => {
        const { allowedUrls, urls } = permissions.send_pixel ?? {};
        this.allow(allowedUrls === 'any' || urls?.some((pattern) => fits(pattern, url)), `send_pixel ${url}`);
        this.network('pixel', url, onSuccess, onFailure);
      },
      injectScript: (url, onSuccess, onFailure, cacheToken) => {
        this.allow(permissions.inject_script?.urls.some((pattern) => fits(pattern, url)), `inject_script ${url}`);
        const token = cacheToken ?? Symbol('none');
        if (!this.loaded.has(token)) this.loaded.set(token, Promise.resolve(this.load('script', url)));
        this.pending.push(this.loaded.get(token).then((ok) => (ok ? onSuccess : onFailure)?.()));
      },
    };
    if (!apis[name]) throw new Error(`the sandbox has no ${name}`);
    return this.api(name, apis[name]);
  }
}
