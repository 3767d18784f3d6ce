"""Large cities of the world: name, country, longitude, latitude, people in thousands (metropolitan, rounded)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class City:
    name: str
    country: str
    lon: float
    lat: float
    people: int  # thousands

    @property
    def tag(self) -> str:
        """The name as one lower-case word, for hashtags: `newyork`."""
        return self.name.replace(" ", "").replace("-", "").lower()

    @property
    def language(self) -> str:
        return LANGUAGES.get(self.country, "en")

    @property
    def activity(self) -> float:
        """How many posts the city's people write, relative to their number: the platform is not equally at home
        everywhere."""
        return self.people * ACTIVITY.get(self.country, 0.6)


_TABLE = """
Tokyo JP 139.69 35.69 37300;Osaka JP 135.50 34.69 19000;Nagoya JP 136.91 35.18 9500;Fukuoka JP 130.40 33.59 5500
Sapporo JP 141.35 43.06 2600;Sendai JP 140.87 38.27 2300;Hiroshima JP 132.46 34.39 2000;Kyoto JP 135.77 35.01 1460
Kobe JP 135.18 34.69 1520;Naha JP 127.68 26.21 890;Niigata JP 139.02 37.90 780;Kanazawa JP 136.66 36.56 460
Seoul KR 126.98 37.57 25500;Busan KR 129.08 35.18 3400;Daegu KR 128.60 35.87 2400;Daejeon KR 127.38 36.35 1500
Gwangju KR 126.85 35.16 1450;Taipei TW 121.56 25.03 7000;Kaohsiung TW 120.31 22.63 2770;Taichung TW 120.68 24.15 2800
Shanghai CN 121.47 31.23 28500;Beijing CN 116.41 39.90 21500;Guangzhou CN 113.26 23.13 18700
Shenzhen CN 114.06 22.54 17500;Chengdu CN 104.07 30.57 16000;Chongqing CN 106.55 29.56 17000
Tianjin CN 117.20 39.13 13800;Wuhan CN 114.31 30.59 11200;Xian CN 108.94 34.34 12900;Hangzhou CN 120.16 30.27 11900
Nanjing CN 118.80 32.06 9300;Shenyang CN 123.43 41.81 8300;Harbin CN 126.63 45.80 6700;Qingdao CN 120.38 36.07 6200
Dalian CN 121.61 38.91 5300;Kunming CN 102.83 24.88 5300;Xiamen CN 118.09 24.48 4600;Changsha CN 112.94 28.23 5600
Urumqi CN 87.62 43.83 4000;Hong Kong HK 114.17 22.30 7500;Macau CN 113.54 22.20 680;Ulaanbaatar MN 106.92 47.89 1600
Manila PH 120.98 14.60 24000;Cebu PH 123.89 10.32 3000;Davao PH 125.61 7.07 1800;Jakarta ID 106.85 -6.21 33500
Surabaya ID 112.75 -7.26 6500;Bandung ID 107.61 -6.91 8000;Medan ID 98.67 3.59 4700;Semarang ID 110.42 -6.97 4100
Makassar ID 119.43 -5.15 2700;Denpasar ID 115.22 -8.67 2200;Yogyakarta ID 110.37 -7.80 4000
Palembang ID 104.75 -2.98 1700;Kuala Lumpur MY 101.69 3.14 8400;Penang MY 100.33 5.41 2800
Johor Bahru MY 103.76 1.49 2200;Singapore SG 103.82 1.35 5900;Bangkok TH 100.50 13.76 17000
Chiang Mai TH 98.98 18.79 1200;Phuket TH 98.39 7.88 600;Hanoi VN 105.83 21.03 8500;Saigon VN 106.66 10.76 14000
Da Nang VN 108.20 16.05 1300;Phnom Penh KH 104.92 11.56 2300;Vientiane LA 102.63 17.98 1000;Yangon MM 96.16 16.87 5600
Mandalay MM 96.08 21.96 1500;Dhaka BD 90.41 23.81 22500;Chittagong BD 91.78 22.36 5300;Delhi IN 77.21 28.61 32000
Mumbai IN 72.88 19.08 24500;Kolkata IN 88.36 22.57 15300;Bangalore IN 77.59 12.97 13700;Chennai IN 80.27 13.08 11800
Hyderabad IN 78.49 17.39 10800;Ahmedabad IN 72.57 23.02 8600;Pune IN 73.86 18.52 7100;Surat IN 72.83 21.17 8000
Jaipur IN 75.79 26.91 4200;Lucknow IN 80.95 26.85 3900;Kanpur IN 80.33 26.45 3200;Nagpur IN 79.09 21.15 3000
Indore IN 75.86 22.72 3300;Kochi IN 76.27 9.93 3300;Bhopal IN 77.41 23.26 2600;Patna IN 85.14 25.59 2600
Goa IN 73.83 15.49 600;Colombo LK 79.86 6.93 2400;Kathmandu NP 85.32 27.72 1600;Karachi PK 67.01 24.86 17600
Lahore PK 74.33 31.55 13900;Islamabad PK 73.05 33.68 4500;Faisalabad PK 73.09 31.42 3800;Peshawar PK 71.58 34.01 2400
Kabul AF 69.18 34.53 4700;Tehran IR 51.39 35.69 15800;Mashhad IR 59.61 36.30 3400;Isfahan IR 51.67 32.65 2300
Shiraz IR 52.53 29.59 1700;Baghdad IQ 44.36 33.31 7900;Basra IQ 47.78 30.51 1500;Erbil IQ 44.01 36.19 1600
Riyadh SA 46.72 24.71 7800;Jeddah SA 39.19 21.49 4900;Dammam SA 50.10 26.43 2200;Mecca SA 39.83 21.39 2200
Kuwait City KW 47.98 29.38 3300;Doha QA 51.53 25.29 2400;Manama BH 50.59 26.23 700;Dubai AE 55.27 25.20 5600
Abu Dhabi AE 54.37 24.45 1600;Muscat OM 58.41 23.59 1700;Sanaa YE 44.21 15.37 3300;Amman JO 35.93 31.95 4600
Beirut LB 35.50 33.89 2400;Damascus SY 36.29 33.51 2600;Tel Aviv IL 34.78 32.08 4200;Jerusalem IL 35.21 31.77 1300
Istanbul TR 28.98 41.01 15900;Ankara TR 32.85 39.93 5800;Izmir TR 27.14 38.42 4500;Bursa TR 29.06 40.19 3200
Antalya TR 30.71 36.90 2700;Adana TR 35.32 37.00 2270;Gaziantep TR 37.38 37.07 2150;Konya TR 32.49 37.87 2300
Trabzon TR 39.72 41.00 820;Baku AZ 49.87 40.41 3700;Tbilisi GE 44.79 41.72 1500;Yerevan AM 44.51 40.18 1400
Almaty KZ 76.89 43.24 2200;Astana KZ 71.43 51.13 1350;Tashkent UZ 69.24 41.30 3600;Bishkek KG 74.57 42.87 1300
Moscow RU 37.62 55.75 21500;Saint Petersburg RU 30.32 59.94 6200;Novosibirsk RU 82.92 55.03 1900
Yekaterinburg RU 60.61 56.84 2200;Kazan RU 49.11 55.80 1900;Samara RU 50.15 53.20 2300;Rostov RU 39.70 47.24 2200
Vladivostok RU 131.89 43.12 760;Kyiv UA 30.52 50.45 3500;Kharkiv UA 36.23 49.99 1700;Odesa UA 30.72 46.48 1200
Lviv UA 24.03 49.84 1000;Minsk BY 27.56 53.90 2300;Warsaw PL 21.01 52.23 3300;Krakow PL 19.94 50.06 1800
Wroclaw PL 17.04 51.11 1250;Gdansk PL 18.65 54.35 1600;Prague CZ 14.44 50.08 2700;Brno CZ 16.61 49.20 730
Bratislava SK 17.11 48.15 720;Budapest HU 19.04 47.50 3000;Bucharest RO 26.10 44.43 2300;Cluj RO 23.59 46.77 550
Sofia BG 23.32 42.70 1700;Belgrade RS 20.46 44.79 1700;Zagreb HR 15.98 45.81 1100;Sarajevo BA 18.41 43.86 560
Ljubljana SI 14.51 46.06 570;Athens GR 23.73 37.98 3600;Thessaloniki GR 22.94 40.64 1100;Vienna AT 16.37 48.21 2900
Graz AT 15.44 47.07 650;Berlin DE 13.40 52.52 6100;Hamburg DE 9.99 53.55 5200;Munich DE 11.58 48.14 5900
Cologne DE 6.96 50.94 3600;Frankfurt DE 8.68 50.11 5600;Stuttgart DE 9.18 48.78 5300;Dresden DE 13.74 51.05 1300
Leipzig DE 12.37 51.34 1200;Hanover DE 9.73 52.38 1300;Zurich CH 8.54 47.38 2000;Geneva CH 6.14 46.20 1000
Paris FR 2.35 48.86 13000;Lyon FR 4.84 45.76 2300;Marseille FR 5.37 43.30 1900;Toulouse FR 1.44 43.60 1500
Lille FR 3.06 50.63 1500;Bordeaux FR -0.58 44.84 1400;Nantes FR -1.55 47.22 1030;Nice FR 7.26 43.70 1000
Strasbourg FR 7.75 48.57 860;Brussels BE 4.35 50.85 2700;Antwerp BE 4.40 51.22 1100;Amsterdam NL 4.90 52.37 2900
Rotterdam NL 4.48 51.92 1900;London GB -0.12 51.51 14900;Manchester GB -2.24 53.48 3400;Birmingham GB -1.90 52.48 4300
Leeds GB -1.55 53.80 2600;Glasgow GB -4.25 55.86 1900;Liverpool GB -2.99 53.41 2300;Newcastle GB -1.61 54.98 1600
Bristol GB -2.59 51.45 1100;Cardiff GB -3.18 51.48 1100;Edinburgh GB -3.19 55.95 900;Belfast GB -5.93 54.60 700
Dublin IE -6.26 53.35 2100;Cork IE -8.47 51.90 400;Copenhagen DK 12.57 55.68 2100;Oslo NO 10.75 59.91 1600
Bergen NO 5.32 60.39 430;Stockholm SE 18.07 59.33 2400;Gothenburg SE 11.97 57.71 1100;Malmo SE 13.00 55.60 700
Helsinki FI 24.94 60.17 1600;Reykjavik IS -21.94 64.15 240;Tallinn EE 24.75 59.44 620;Riga LV 24.11 56.95 860
Vilnius LT 25.28 54.69 720;Madrid ES -3.70 40.42 6900;Barcelona ES 2.17 41.39 5700;Valencia ES -0.38 39.47 2500
Seville ES -5.98 37.39 1500;Malaga ES -4.42 36.72 1000;Bilbao ES -2.93 43.26 1000;Zaragoza ES -0.89 41.65 770
Lisbon PT -9.14 38.72 2900;Porto PT -8.61 41.15 1700;Rome IT 12.50 41.90 4300;Milan IT 9.19 45.46 5200
Naples IT 14.27 40.85 4200;Turin IT 7.69 45.07 2200;Palermo IT 13.36 38.12 1200;Bologna IT 11.34 44.49 1000
Florence IT 11.26 43.77 1000;Genoa IT 8.93 44.41 850;Bari IT 16.87 41.12 1200;Cairo EG 31.24 30.04 22600
Alexandria EG 29.92 31.20 5600;Tripoli LY 13.19 32.89 2200;Tunis TN 10.18 36.81 2500;Algiers DZ 3.06 36.75 4500
Oran DZ -0.64 35.70 1600;Casablanca MA -7.59 33.57 4300;Rabat MA -6.84 34.02 2000;Marrakesh MA -7.98 31.63 1300
Dakar SN -17.44 14.69 3900;Bamako ML -8.00 12.64 3000;Abidjan CI -4.01 5.36 6300;Accra GH -0.19 5.60 5400
Kumasi GH -1.62 6.69 3700;Lagos NG 3.38 6.52 16600;Kano NG 8.52 12.00 4400;Abuja NG 7.49 9.08 4000
Ibadan NG 3.95 7.38 3900;Port Harcourt NG 7.05 4.82 3600;Douala CM 9.77 4.05 4100;Yaounde CM 11.50 3.85 4500
Kinshasa CD 15.27 -4.44 16900;Lubumbashi CD 27.48 -11.66 2900;Luanda AO 13.23 -8.84 9600;Khartoum SD 32.53 15.50 6500
Addis Ababa ET 38.76 9.03 5700;Nairobi KE 36.82 -1.29 6500;Mombasa KE 39.66 -4.04 1500;Kampala UG 32.58 0.35 4100
Kigali RW 30.06 -1.94 1300;Dar es Salaam TZ 39.28 -6.79 8100;Mogadishu SO 45.32 2.05 2700;Lusaka ZM 28.32 -15.39 3400
Harare ZW 31.03 -17.83 2500;Maputo MZ 32.57 -25.97 2800;Antananarivo MG 47.51 -18.88 4000
Johannesburg ZA 28.05 -26.20 14600;Cape Town ZA 18.42 -33.92 4900;Durban ZA 31.02 -29.86 4000
Pretoria ZA 28.19 -25.75 2900;Windhoek NA 17.08 -22.56 490;New York US -74.01 40.71 20100
Los Angeles US -118.24 34.05 18500;Chicago US -87.63 41.88 9400;Dallas US -96.80 32.78 7900
Houston US -95.37 29.76 7300;Washington US -77.04 38.91 6400;Philadelphia US -75.17 39.95 6200
Atlanta US -84.39 33.75 6200;Miami US -80.19 25.76 6200;Phoenix US -112.07 33.45 5000;Boston US -71.06 42.36 4900
San Francisco US -122.42 37.77 6500;Detroit US -83.05 42.33 4300;Seattle US -122.33 47.61 4000
Minneapolis US -93.27 44.98 3700;San Diego US -117.16 32.72 3300;Tampa US -82.46 27.95 3200
Denver US -104.99 39.74 3000;Baltimore US -76.61 39.29 2800;Saint Louis US -90.20 38.63 2800
Orlando US -81.38 28.54 2700;Charlotte US -80.84 35.23 2700;San Antonio US -98.49 29.42 2600
Portland US -122.68 45.52 2500;Austin US -97.74 30.27 2400;Pittsburgh US -80.00 40.44 2400
Sacramento US -121.49 38.58 2400;Las Vegas US -115.14 36.17 2300;Cincinnati US -84.51 39.10 2300
Kansas City US -94.58 39.10 2200;Columbus US -83.00 39.96 2100;Cleveland US -81.69 41.50 2100
Indianapolis US -86.16 39.77 2100;Nashville US -86.78 36.16 2000;Milwaukee US -87.91 43.04 1600
Raleigh US -78.64 35.78 1500;Memphis US -90.05 35.15 1300;New Orleans US -90.07 29.95 1300
Salt Lake City US -111.89 40.76 1300;Oklahoma City US -97.52 35.47 1400;Louisville US -85.76 38.25 1300
Buffalo US -78.88 42.89 1200;Tucson US -110.97 32.22 1050;Honolulu US -157.86 21.31 1000
Albuquerque US -106.65 35.08 920;Omaha US -95.94 41.26 970;Boise US -116.20 43.62 800;Anchorage US -149.90 61.22 400
Toronto CA -79.38 43.65 6700;Montreal CA -73.57 45.50 4300;Vancouver CA -123.12 49.28 2800
Calgary CA -114.07 51.05 1600;Edmonton CA -113.49 53.54 1500;Ottawa CA -75.70 45.42 1500;Winnipeg CA -97.14 49.90 870
Quebec CA -71.21 46.81 850;Halifax CA -63.57 44.65 480;Mexico City MX -99.13 19.43 22300
Guadalajara MX -103.35 20.67 5400;Monterrey MX -100.32 25.69 5300;Puebla MX -98.21 19.04 3300
Tijuana MX -117.04 32.51 2200;Leon MX -101.68 21.12 1900;Merida MX -89.62 20.97 1300;Cancun MX -86.85 21.16 950
Guatemala City GT -90.51 14.63 3100;San Salvador SV -89.22 13.69 1700;Tegucigalpa HN -87.19 14.07 1500
Managua NI -86.24 12.11 1400;San Jose CR -84.08 9.93 2200;Panama City PA -79.52 8.98 2000;Havana CU -82.37 23.11 2100
Kingston JM -76.79 17.97 1200;Santo Domingo DO -69.93 18.49 3500;San Juan PR -66.11 18.47 2400
Port au Prince HT -72.34 18.54 2900;Bogota CO -74.07 4.71 11500;Medellin CO -75.57 6.25 4100;Cali CO -76.53 3.45 2900
Barranquilla CO -74.78 10.97 2300;Cartagena CO -75.51 10.39 1100;Caracas VE -66.90 10.48 2900
Maracaibo VE -71.64 10.65 2300;Quito EC -78.47 -0.18 2000;Guayaquil EC -79.89 -2.17 3100;Lima PE -77.04 -12.05 11200
Arequipa PE -71.54 -16.41 1200;La Paz BO -68.15 -16.50 1900;Santa Cruz BO -63.18 -17.78 1900
Santiago CL -70.65 -33.45 7000;Valparaiso CL -71.63 -33.05 1000;Concepcion CL -73.05 -36.83 970
Buenos Aires AR -58.38 -34.60 15500;Cordoba AR -64.18 -31.42 1600;Rosario AR -60.65 -32.95 1500
Mendoza AR -68.85 -32.89 1200;Montevideo UY -56.16 -34.90 1800;Asuncion PY -57.58 -25.26 3500
Sao Paulo BR -46.63 -23.55 22600;Rio de Janeiro BR -43.17 -22.91 13600;Belo Horizonte BR -43.94 -19.92 6200
Brasilia BR -47.88 -15.79 4900;Porto Alegre BR -51.23 -30.03 4200;Recife BR -34.88 -8.05 4200
Fortaleza BR -38.54 -3.73 4200;Salvador BR -38.50 -12.97 4000;Curitiba BR -49.27 -25.43 3800
Campinas BR -47.06 -22.91 3400;Goiania BR -49.25 -16.69 2900;Manaus BR -60.02 -3.12 2400;Belem BR -48.50 -1.46 2400
Florianopolis BR -48.55 -27.60 1300;Natal BR -35.21 -5.79 1600;Sydney AU 151.21 -33.87 5400
Melbourne AU 144.96 -37.81 5200;Brisbane AU 153.03 -27.47 2700;Perth AU 115.86 -31.95 2300
Adelaide AU 138.60 -34.93 1400;Canberra AU 149.13 -35.28 470;Hobart AU 147.33 -42.88 250;Darwin AU 130.84 -12.46 150
Auckland NZ 174.76 -36.85 1700;Wellington NZ 174.78 -41.29 420;Christchurch NZ 172.64 -43.53 400
Suva FJ 178.44 -18.14 300;Port Moresby PG 147.18 -9.44 400;Noumea NC 166.46 -22.27 180
"""

LANGUAGES = {
    code: language
    for language, codes in {
        "es": "ES MX GT SV HN NI CR PA CU DO PR CO VE EC PE BO CL AR UY PY",
        "pt": "BR PT AO MZ",
        "fr": "FR BE SN ML CI CM CD MG HT NC",
        "de": "DE AT CH",
        "it": "IT",
        "tr": "TR",
        "ja": "JP",
        "id": "ID MY",
        "ru": "RU BY KZ KG",
        "zh": "CN TW HK",
        "ar": "EG SA IQ SY JO LB KW QA BH AE OM YE LY TN DZ MA SD",
    }.items()
    for code in codes.split()
}

ACTIVITY = {
    code: share
    for share, codes in {
        1.6: "US JP GB",
        1.2: "CA AU IE NZ ES FR NL BR TR SA AE KW QA SG",
        0.9: "DE IT AR CL MX KR TW HK PT BE AT CH SE NO DK FI PL ID MY PH GR CZ IL",
        0.3: "IN PK BD NG EG IR VN RU",
        0.15: "CD ET AF SD ML MG TZ MM YE SY SO AO",
        0.06: "CN",
    }.items()
    for code in codes.split()
}


def _city(record: str) -> City:
    *name, country, lon, lat, people = record.split()
    return City(" ".join(name), country, float(lon), float(lat), int(people))


CITIES: tuple[City, ...] = tuple(_city(record) for line in _TABLE.split("\n") for record in line.split(";") if record)
